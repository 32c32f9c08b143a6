"""A simulated world with faults: lost, late and repeated reports, fenced nodes, drained pods, frozen agents."""

import json
from dataclasses import dataclass, field, replace

from muster.api.spec.job import Job
from muster.api.status.reader import read_status
from muster.api.yaml.serialise import serialise_status
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.fence import fence_seconds
from muster.core.members import count_nodes_with_spares
from muster_worker.contract.schema import FENCED, AgentPhase, AgentProblem, Report
from unit.core.simulated import SimulatedNode, World

FENCE_STOP_SECONDS = 9.0
"""From the fence until the ranks have ended: the check each second, and 8 s between SIGTERM and SIGKILL."""

DRAIN_SECONDS = 3.0
"""How long the ranks of a drained pod run after their SIGTERM."""

DRAIN_GRACE_SECONDS = 30.0
"""The time from a pod's deletion by a drain until it should be complete."""

KEPT_REPORTS = 40


@dataclass
class DisturbedNode(SimulatedNode):
    """A node of which reports are delayed, or arrive again.

    `fence_seconds` is the value of its agent's plan. `sent` has the last reports, also those of earlier pods. Reports
    are in `mail` while `is_mail_held`.
    """

    fence_seconds: float = 0.0
    are_reports_held: bool = False
    sent: list[Report] = field(default_factory=list)

    @property
    def runs_ranks(self) -> bool:
        """Whether one of its ranks runs, even if the operator can't observe it."""
        return self.is_alive and any(rank.ended_at is None for rank in self.ranks)

    def create(self, replacement: int, at: float) -> None:
        """Create its next pod. Nothing of the old one may run beside it, even if the operator can't observe that."""
        assert not (self.fence_seconds and self.is_disconnected and self.runs_ranks), (
            "a pod is replaced before its fence"
        )
        super().create(replacement, at)

    def drain(self, at: float) -> None:
        """Delete its pod with a grace period."""
        if self.is_alive and not self.is_disconnected and not self.process.is_terminating:
            self.terminated_at = at
            due = at + DRAIN_GRACE_SECONDS
            self.process = replace(self.process, is_terminating=True, deletion_requested_at=at, deletion_deadline=due)

    def reconnect(self, at: float) -> None:
        """Reconnect its machine. A fenced agent has ended meanwhile."""
        if self.is_disconnected and self.is_alive and self.problem is not None:
            self.exit(at, 143, None)
        super().reconnect(at)

    def tick(self, now: float, first_rank: int) -> None:
        """Act as an agent that may be cut off or drained."""
        if self.disconnected_at is not None and self.fence_seconds and now >= self.disconnected_at + self.fence_seconds:
            self._fence(now)
        self._end_if_drained(now)
        super().tick(now, first_rank)

    def _fence(self, now: float) -> None:
        """Stop the ranks in the time that the agent has for it."""
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
        # The kubelet deletes a pod some time after it has ended.
        elif self.process.state is ProcessState.EXITED and now >= self.terminated_at + 2 * DRAIN_SECONDS:
            self.remove(now)

    def take_reports(self, now: float) -> list[tuple[Report, float]]:
        """Return the reports that arrive now: none while they are held, and all of these together afterwards."""
        if self.are_reports_held:
            return []
        reports = [report for report, _ in super().take_reports(now)]
        self.sent = [*self.sent, *reports][-KEPT_REPORTS:]
        return [(report, now) for report in reports]

    def repeat_report(self, index: int, now: float) -> None:
        """Let an earlier report arrive once more, perhaps of an earlier attempt or pod."""
        if self.sent:
            self.pending_reports.append((self.sent[index % len(self.sent)], now))

    def facts(self) -> NodeFacts:
        """Return the node as on a cluster, where pods have names and machines."""
        node = super().facts()
        name = f"{node.name}-{node.process.replacement}"
        return replace(node, process=replace(node.process, name=name, kube_node=f"machine-{self.number}"))

    def _report(self, now: float) -> Report:
        # Pods with names can't reach each other at a loopback address.
        return replace(super()._report(now), fence_seconds=self.fence_seconds, address=f"10.0.0.{self.number + 1}")


@dataclass
class DisturbedWorld(World):
    """A world whose operator knows nothing but the stored status after it was restarted."""

    def facts(self) -> JobFacts:
        """Return the facts with the fence of the job's policy."""
        return replace(super().facts(), fence_seconds=fence_seconds(self.job))

    def restart_operator(self) -> None:
        """Start another operator. It reads the status as the API server stores it."""
        super().restart_operator()
        stored = read_status(json.loads(json.dumps({"status": serialise_status(self.status)})))
        assert stored == self.status, "the stored status is another one"
        self.status = stored


def new_disturbed_world(job: Job) -> tuple[DisturbedWorld, list[DisturbedNode]]:
    """Return a world for the job, and its nodes."""
    seconds = fence_seconds(job)
    nodes = [DisturbedNode(number, 2, fence_seconds=seconds) for number in range(count_nodes_with_spares(job))]
    return DisturbedWorld(job, [*nodes]), nodes
