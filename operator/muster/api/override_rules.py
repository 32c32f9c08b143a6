"""Rules about which nodes an override speaks of."""

from collections.abc import Iterator

from muster.api.document import quoted
from muster.api.node_ranges import ranges
from muster.api.rule import Breach, Rule
from muster.api.spec import Spec


def _override_nodes(spec: Spec) -> Iterator[Breach]:
    for index, override in enumerate(spec.node_overrides):
        if any(not part or part.stop > spec.nodes for part in ranges(override.nodes)):
            yield Breach(("nodeOverrides", index, "nodes"), f"{quoted(override.nodes)} with {spec.nodes} nodes")


_FIRST = "int(part.split('-')[0])"
_LAST = "int(part.substring(part.indexOf('-') + 1))"

OVERRIDE_RULES = (
    Rule(
        places=("spec",),
        why="What is said of a node that doesn't exist would be lost.",
        sentence="each range goes from a lower to a higher node, below spec.nodes; the first node is 0",
        breaches=_override_nodes,
        cel="!has(self.nodeOverrides) || self.nodeOverrides.all(each, each.nodes.split(',').all(part,"
        f" {_FIRST} <= {_LAST} && {_LAST} < self.nodes))",
    ),
)
