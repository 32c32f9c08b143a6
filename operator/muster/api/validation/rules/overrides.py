"""Rules about `spec.nodeOverrides`."""

from collections.abc import Iterator

from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.spec.node_ranges import group_nodes
from muster.api.validation.rule import Rule, Violation


def _check_override_nodes(spec: Spec) -> Iterator[Violation]:
    for index, override in enumerate(spec.node_overrides):
        if any(not interval or interval.stop > spec.nodes for interval in override.ranges.intervals):
            yield Violation(("nodeOverrides", index, "nodes"), f"{quote(override.nodes)} with {spec.nodes} nodes")


MAX_POD_VARIANTS = 128
"""Maximum number of different pods of a job. Before the job starts, the operator validates a pod of each variant."""

MAX_MERGES = 256
"""Maximum number of merges to render one pod of each variant.

An override counts once for each variant that has it.
"""


def _check_pod_variants(spec: Spec) -> Iterator[Violation]:
    variants = group_nodes(spec.nodes, [override.ranges for override in spec.node_overrides])
    if len(variants) > MAX_POD_VARIANTS:
        yield Violation(("nodeOverrides",), f"{len(variants)} combinations")
        return
    merge_count = sum(variant[0] in override.ranges for variant in variants for override in spec.node_overrides)
    if merge_count > MAX_MERGES:
        yield Violation(
            ("nodeOverrides",), f"{len(variants)} combinations, which need {merge_count} merges of overrides"
        )


_FIRST_NODE_CEL = "int(part.split('-')[0])"
_LAST_NODE_CEL = "int(part.substring(part.indexOf('-') + 1))"

OVERRIDE_RULES = (
    Rule(
        schema_paths=("spec",),
        rationale="An override of a node that doesn't exist would have no effect.",
        message="each node must be less than spec.nodes (the first is 0), and a range must not begin with its higher "
        "node",
        find_violations=_check_override_nodes,
        cel="!has(self.nodeOverrides) || self.nodeOverrides.all(each, each.nodes.split(',').all(part,"
        f" {_FIRST_NODE_CEL} <= {_LAST_NODE_CEL} && {_LAST_NODE_CEL} < self.nodes))",
    ),
    Rule(
        schema_paths=("spec.nodeOverrides",),
        rationale="muster renders a pod for each combination and validates it before the job starts.",
        message=f"at most {MAX_POD_VARIANTS} combinations of overrides are allowed, and {MAX_MERGES} merges (an "
        "override counts once for each combination that contains it); combine overrides, or let fewer of them overlap",
        find_violations=_check_pod_variants,
    ),
)
