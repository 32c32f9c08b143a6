"""Describe the problems of nodes, with one sentence for all nodes that have the same problem.

Also describe that muster deletes the pods of a gang to schedule them again later.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.timestamps import format_timestamp
from muster.core.edited_source import NO_MEMORY_FOR_SOURCE
from muster.core.facts import JobFacts, NodeFacts
from muster.core.failure.problems import (
    FETCHING_FILES,
    POD_DELETED,
    PREEMPTED,
    QUOTA_EXCEEDED,
    SCHEDULING_GATED,
    UNSCHEDULABLE,
)
from muster.core.failure.rank_output import normalize_error_line, sanitize_line
from muster.core.fence import OLD_POD_MAY_RUN
from muster.core.gang_release import GANG_RELEASED, GangRelease
from muster.core.problem import Problem
from muster.core.training_job.problems import CAPACITY_REASONS, SERVICE_REASONS

MAX_NAMES = 3
"""The maximum number of node names in a sentence, which counts the other nodes."""

MAX_CHARS = 600
"""The maximum length of a problem's text in a message."""

TRANSIENT_REASONS = frozenset(
    (
        *(UNSCHEDULABLE, SCHEDULING_GATED, QUOTA_EXCEEDED, POD_DELETED, PREEMPTED, FETCHING_FILES),
        NO_MEMORY_FOR_SOURCE,
        *(*CAPACITY_REASONS, *SERVICE_REASONS),
    )
)
"""Problems that may end without a user's action: the cluster grows, other jobs end, or AWS recovers."""


@dataclass(frozen=True)
class SharedProblem:
    """A problem and the nodes that share it, in order; `node_count` is the job's number of nodes."""

    problem: Problem
    nodes: tuple[NodeFacts, ...]
    node_count: int

    @property
    def is_transient(self) -> bool:
        """Whether the problem may end without a user's action."""
        # The problem of a terminating pod ends with the pod, unless the pod is on a lost Kubernetes node.
        are_terminating = all(node.process.is_terminating for node in self.nodes)
        return self.problem.reason in TRANSIENT_REASONS or (are_terminating and self.problem.reason != OLD_POD_MAY_RUN)

    @property
    def sentence(self) -> str:
        """A sentence with the nodes, the problem and its remedy."""
        message = sanitize_line(self.problem.message, limit=MAX_CHARS)
        if self.problem.shortage and self.node_count > 1:
            share = f"{len(self.nodes)} of {self.node_count} nodes"
            return f"{share}: {self.problem.shortage} ({self.nodes[0].name}: {message})"
        return f"{join_node_names([node.name for node in self.nodes])}: {message}"


def group_problems(nodes: Iterable[NodeFacts], node_count: int) -> tuple[SharedProblem, ...]:
    """Group the nodes' problems; `node_count` is the job's number of nodes. Problems that need a user come first."""
    groups: dict[tuple[str, str], list[NodeFacts]] = {}
    first: dict[tuple[str, str], Problem] = {}
    for node in nodes:
        problem = node.process.problem
        if problem is not None:
            # Ignore numbers in messages, because they differ between pods and nodes.
            key = (problem.reason, problem.shortage or normalize_error_line((problem.message,)))
            first.setdefault(key, problem)
            groups.setdefault(key, []).append(node)
    shared = (SharedProblem(first[key], tuple(members), node_count) for key, members in groups.items())
    return tuple(sorted(shared, key=lambda entry: (entry.is_transient, entry.nodes[0].node)))


def join_node_names(names: list[str]) -> str:
    """Write nodes as the subject of a sentence: "vit-1", "3 nodes (vit-0, vit-1, vit-2)"."""
    if len(names) == 1:
        return names[0]
    more = len(names) - MAX_NAMES
    return f"{len(names)} nodes ({', '.join(names[:MAX_NAMES])}{f' and {more} more' if more > 0 else ''})"


def describe_release(job: Job, previous: Status, facts: JobFacts, release: GangRelease) -> str:
    """Describe that muster is deleting the gang's pods, and when it creates them again."""
    # Resource shortages are visible only while the pods exist, so prefer the previous message of this release.
    return _find_previous_message(previous, release) or _format_release(job, facts, release)


def _find_previous_message(previous: Status, release: GangRelease) -> str | None:
    placement = previous.placement
    if placement is None or placement.releases != release.count:
        return None
    return next(
        (
            condition.message
            for condition in previous.conditions
            if condition.type == "Scheduled" and condition.reason == GANG_RELEASED
        ),
        None,
    )


def _format_release(job: Job, facts: JobFacts, release: GangRelease) -> str:
    nodes = facts.nodes
    shared = group_problems((node for node in nodes if not node.is_scheduled), len(nodes))
    missing = "; ".join(entry.sentence for entry in shared)
    times = "" if release.count == 1 else f", for the {_format_ordinal(release.count)} time"
    sentence = (
        f"Not all {len(nodes)} nodes were scheduled within startupTimeoutSeconds"
        f" ({job.spec.startup_timeout_seconds} s): muster deletes their pods{times} and creates them again"
        f" at {format_timestamp(release.until)}"
    )
    return f"{sentence}; {missing}" if missing else sentence


def _format_ordinal(count: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{'th' if count % 100 in (11, 12, 13) else ending}"
