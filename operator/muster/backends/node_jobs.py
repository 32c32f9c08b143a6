"""Jobs whose nodes run muster's agent, wherever those are: one plan for pods, processes, and what may come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.base import JobResource, Observation, Requeue, ResourceWriter
from muster.core.actions import Action
from muster.core.decide import decide, next_wake
from muster.core.facts import JobFacts
from muster.core.inference import infer
from muster.core.judge import Outcome, judge
from muster.core.status.summarise import summarise


class NodeBackend(Protocol):
    """Where a job's nodes live."""

    async def observe(self, job: Job) -> JobFacts:
        """What is known of the job now."""
        ...

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Do what was decided. Doing it again changes nothing."""
        ...


class ClusterNodes(NodeBackend, Protocol):
    """Where the nodes of all jobs of a cluster live."""

    def forget(self, job_uid: str) -> None:
        """Drop what is held for a job whose resource was deleted."""
        ...


@dataclass(frozen=True)
class NodePlan:
    """`leader_term` numbers the operator's time as leader: agents refuse commands of an earlier one."""

    leader_term: int

    def complete(self, observed: Observation[JobFacts]) -> Observation[JobFacts]:
        """The steps are `STEPS` in `core/inference.py`."""
        job, previous, now = observed.job, observed.previous, observed.now
        return Observation(job, previous, infer(job, previous, observed.facts, now), now)

    def judge(self, known: Observation[JobFacts]) -> Outcome:
        """See `core/judge.py`."""
        return judge(known.job, known.previous, known.facts, known.now)

    def decide(self, known: Observation[JobFacts], outcome: Outcome) -> tuple[Action, ...]:
        """See `core/decide.py`."""
        return decide(known.job, known.facts, outcome, known.now, self.leader_term)

    def summarise(self, known: Observation[JobFacts], outcome: Outcome, actions: Sequence[Action]) -> Status:
        """See `core/status/summarise.py`."""
        return summarise(known.job, known.previous, known.facts, outcome, actions, known.now)

    def next_wake(self, known: Observation[JobFacts], outcome: Outcome) -> float | None:
        """See `core/decide.py`."""
        return next_wake(known.job, known.facts, outcome, known.now)

    def is_over(self, known: Observation[JobFacts], outcome: Outcome, _: Sequence[Action]) -> bool:
        """Once no agent is left: its commands, and what it may still say, need a turn."""
        return outcome.is_decided and known.facts.is_gone


@dataclass(frozen=True)
class PlannedNodes:
    """Nodes with their plan: a backend for `reconcile`."""

    nodes: NodeBackend
    plan: NodePlan

    async def observe(self, job: Job, _: Status) -> JobFacts:
        """What is known of the job now."""
        return await self.nodes.observe(job)

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Do what was decided. Doing it again changes nothing."""
        await self.nodes.apply(job, actions)


@dataclass(frozen=True)
class NodeJobs:
    """All jobs of a backend of nodes, for as long as this operator leads."""

    nodes: ClusterNodes
    leader_term: int

    def of(self, resource: JobResource, writer: ResourceWriter) -> PlannedNodes:  # noqa: ARG002 - nodes are all it has
        """The backend of one job, for one time around."""
        return PlannedNodes(self.nodes, NodePlan(self.leader_term))

    async def leave(self, resource: JobResource, writer: ResourceWriter) -> Requeue:  # noqa: ARG002 - nothing is held
        """Kubernetes deletes what belongs to the resource."""
        return Requeue(None, is_over=True)

    def forget(self, job_uid: str) -> None:
        """Drop what is held for a job whose resource was deleted."""
        self.nodes.forget(job_uid)

    def close(self) -> None:
        """Nodes go on without an operator."""
