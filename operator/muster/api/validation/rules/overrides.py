"""Rules about the nodes of overrides."""

from collections.abc import Iterator

from muster.api.document import quoted
from muster.api.spec.job import Spec
from muster.api.spec.node_ranges import alike
from muster.api.validation.rule import Breach, Rule


def _override_nodes(spec: Spec) -> Iterator[Breach]:
    for index, override in enumerate(spec.node_overrides):
        if any(not part or part.stop > spec.nodes for part in override.ranges.intervals):
            yield Breach(("nodeOverrides", index, "nodes"), f"{quoted(override.nodes)} with {spec.nodes} nodes")


MAX_KINDS = 128
"""Limit of different pods of a job: the operator validates one of each with a dry run before it creates any."""

MAX_LAYERS = 256
"""Limit of overrides, summed over the different pods: rendering a pod merges each of its overrides."""


def _kinds(spec: Spec) -> Iterator[Breach]:
    kinds = alike(spec.nodes, [override.ranges for override in spec.node_overrides])
    if len(kinds) > MAX_KINDS:
        yield Breach(("nodeOverrides",), f"{len(kinds)} combinations")
        return
    layers = sum(kind[0] in override.ranges for kind in kinds for override in spec.node_overrides)
    if layers > MAX_LAYERS:
        yield Breach(("nodeOverrides",), f"{len(kinds)} combinations of {layers} overrides together")


_FIRST = "int(part.split('-')[0])"
_LAST = "int(part.substring(part.indexOf('-') + 1))"

OVERRIDE_RULES = (
    Rule(
        places=("spec",),
        why="An override of a node that doesn't exist would have no effect.",
        sentence="each range goes from a lower to a higher node, below spec.nodes; the first node is 0",
        breaches=_override_nodes,
        cel="!has(self.nodeOverrides) || self.nodeOverrides.all(each, each.nodes.split(',').all(part,"
        f" {_FIRST} <= {_LAST} && {_LAST} < self.nodes))",
    ),
    Rule(
        places=("spec.nodeOverrides",),
        why="muster renders a pod for each combination and validates it with a dry run before the job starts.",
        sentence=f"nodes may differ by at most {MAX_KINDS} combinations of overrides, of {MAX_LAYERS} together; merge"
        " some, or let fewer overlap",
        breaches=_kinds,
    ),
)
