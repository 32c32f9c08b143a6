"""Rules about which nodes an override speaks of."""

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
"""Of pods that differ in more than their node's number: one of each is shown to the API server before any is made."""

MAX_LAYERS = 256
"""Overrides that the pods of all kinds are made of, together: each is merged whenever one of its kind is looked at."""


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
        why="What is said of a node that doesn't exist would be lost.",
        sentence="each range goes from a lower to a higher node, below spec.nodes; the first node is 0",
        breaches=_override_nodes,
        cel="!has(self.nodeOverrides) || self.nodeOverrides.all(each, each.nodes.split(',').all(part,"
        f" {_FIRST} <= {_LAST} && {_LAST} < self.nodes))",
    ),
    Rule(
        places=("spec.nodeOverrides",),
        why="A pod of each kind is rendered and shown to the API server before the job starts.",
        sentence=f"nodes may differ by at most {MAX_KINDS} combinations of overrides, of {MAX_LAYERS} together; merge"
        " some, or let fewer overlap",
        breaches=_kinds,
    ),
)
