"""A simulated world with faults: lost, late and repeated reports, fenced nodes, drained pods and frozen agents."""

import json
from dataclasses import dataclass, field, replace

from muster.api.spec.job import Job
from muster.api.status.reader import read_status
from muster.api.yaml.serialise import serialise_status
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure_timeouts import get_fence_seconds
from muster.core.world import count_nodes_and_spares
from muster_worker.contract.schema import FENCED, AgentPhase, AgentProblem, Report
from unit.core.simulated import SimulatedNode, World

FENCE_STOP_SECONDS = 9.0
"""The time from the fence until the ranks have ended: at most 1 s until a check, and 8 s from SIGTERM to SIGKILL."""

DRAIN_SECONDS = 3.0
"""The time for which the ranks of a drained pod run after their SIGTERM."""

DRAIN_GRACE_SECONDS = 30.0
"""The grace period of a pod that a drain deletes."""

MAX_SENT_REPORTS = 40


@dataclass
class DisturbedNode(SimulatedNode):
    """A node whose reports may arrive late or repeatedly.

    `fence_seconds` is the value in its agent's plan. `sent_reports` has the last reports, also those of earlier pods.
    Reports stay in `pending_reports` while `are_reports_held`.
    """

    fence_seconds: float = 0.0
    are_reports_held: bool = False
    sent_reports: list[Report] = field(default_factory=list)

    @property
    def runs_ranks(self) -> bool:
        """Whether one of its ranks runs. The operator may be unable to observe that."""
        return self.is_alive and any(rank.ended_at is None for rank in self.ranks)

    def create(self, replacement: int, at: float) -> None:
        """Create its next pod. Check that no rank of the old pod runs, even where the operator can't observe it."""
        assert not (self.fence_seconds and self.is_disconnected and self.runs_ranks), (
            "a pod was replaced before its fence stopped the ranks"
        )
        super().create(replacement, at)

    def drain(self, at: float) -> None:
        """Delete its pod with a grace period."""
        if self.is_alive and not self.is_disconnected and not self.process.is_terminating:
            self.terminated_at = at
            deadline = at + DRAIN_GRACE_SECONDS
            self.process = replace(
                self.process, is_terminating=True, deletion_requested_at=at, deletion_deadline=deadline
            )

    def reconnect(self, at: float) -> None:
        """Reconnect its machine. An agent that the fence stopped exits."""
        if self.is_disconnected and self.is_alive and self.problem is not None:
            self.exit(at, 143, None)
        super().reconnect(at)

    def tick(self, now: float, first_rank: int) -> None:
        """Act as an agent that may be disconnected or drained."""
        if self.disconnected_at is not None and self.fence_seconds and now >= self.disconnected_at + self.fence_seconds:
            self._fence(now)
        self._end_if_drained(now)
        super().tick(now, first_rank)

    def _fence(self, now: float) -> None:
        """Report the fence, and end the ranks after FENCE_STOP_SECONDS."""
        assert self.disconnected_at is not None
        if self.problem is None and self.phase == AgentPhase.RUNNING:
            self.problem = AgentProblem(FENCED, "this node has reached nothing")
        if now >= self.disconnected_at + self.fence_seconds + FENCE_STOP_SECONDS:
            for rank in self.ranks:
                rank.end(now, None, 15, stopped=True)

    def _end_if_drained(self, now: float) -> None:
        if (
            self.terminated_at is None
            or self.is_disconnected
            or self.is_frozen
            or now < self.terminated_at + DRAIN_SECONDS
        ):
            return
        if self.is_alive:
            for rank in self.ranks:
                rank.end(now, None, 15, stopped=True)
            self.exit(now, 143, None)
        # The kubelet deletes an exited pod after some time.
        elif self.process.state is ProcessState.EXITED and now >= self.terminated_at + 2 * DRAIN_SECONDS:
            self.remove(now)

    def take_reports(self, now: float) -> list[tuple[Report, float]]:
        """Return the reports that arrive now: none while reports are held, and all held ones afterwards."""
        if self.are_reports_held:
            return []
        reports = [report for report, _ in super().take_reports(now)]
        self.sent_reports = [*self.sent_reports, *reports][-MAX_SENT_REPORTS:]
        return [(report, now) for report in reports]

    def repeat_report(self, index: int, now: float) -> None:
        """Let an earlier report arrive again. It may be of an earlier attempt or pod."""
        if self.sent_reports:
            self.pending_reports.append((self.sent_reports[index % len(self.sent_reports)], now))

    def facts(self) -> NodeFacts:
        """Return the node's facts with a pod name and a machine, as on a cluster."""
        node = super().facts()
        name = f"{node.name}-{node.process.replacement}"
        return replace(node, process=replace(node.process, name=name, kube_node=f"machine-{self.number}"))

    def _report(self, now: float) -> Report:
        # Pods can't reach each other at a loopback address.
        return replace(super()._report(now), fence_seconds=self.fence_seconds, address=f"10.0.0.{self.number + 1}")


@dataclass
class DisturbedWorld(World):
    """A world whose operator knows only the stored status after a restart."""

    def facts(self) -> JobFacts:
        """Return the facts with the fence seconds of the job's failure policy."""
        return replace(super().facts(), fence_seconds=get_fence_seconds(self.job))

    def restart_operator(self) -> None:
        """Start another operator, which reads the status from JSON as from the API server."""
        super().restart_operator()
        stored = read_status(json.loads(json.dumps({"status": serialise_status(self.status)})))
        assert stored == self.status, "the status changed when it was stored and read"
        self.status = stored


def new_disturbed_world(job: Job) -> tuple[DisturbedWorld, list[DisturbedNode]]:
    """Return a world for the job, and its nodes."""
    seconds = get_fence_seconds(job)
    nodes = [DisturbedNode(number, 2, fence_seconds=seconds) for number in range(count_nodes_and_spares(job))]
    return DisturbedWorld(job, [*nodes]), nodes
