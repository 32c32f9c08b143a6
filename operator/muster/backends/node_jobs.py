"""The plan of jobs whose nodes run muster's agent: the Kubernetes and the local backend share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.base import JobResource, Observation, Requeue, ResourceWriter
from muster.core.actions import Action
from muster.core.decide import decide, next_requeue_at
from muster.core.facts import JobFacts
from muster.core.inference import infer
from muster.core.judge import judge
from muster.core.outcome import Outcome
from muster.core.status.summarise import summarise


class NodeBackend(Protocol):
    """Creates and observes a job's nodes."""

    async def observe(self, job: Job) -> JobFacts:
        """Observe the job's nodes."""
        ...

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Execute the actions. Idempotent."""
        ...


class ClusterNodes(NodeBackend, Protocol):
    """Creates and observes the nodes of all jobs of a cluster."""

    def forget(self, job_uid: str) -> None:
        """Drop the state of a job whose resource was deleted."""
        ...


@dataclass(frozen=True)
class NodePlan:
    """The plan of a job. Agents refuse commands with an earlier `leader_term`."""

    leader_term: int

    def complete(self, observed: Observation[JobFacts]) -> Observation[JobFacts]:
        """Apply `STEPS` of `core/inference.py`."""
        job, previous, now = observed.job, observed.previous, observed.now
        return Observation(job, previous, infer(job, previous, observed.facts, now), now)

    def judge(self, observation: Observation[JobFacts]) -> Outcome:
        """See `core/judge.py`."""
        return judge(observation.job, observation.previous, observation.facts, observation.now)

    def decide(self, observation: Observation[JobFacts], outcome: Outcome) -> tuple[Action, ...]:
        """See `core/decide.py`."""
        return decide(observation.job, observation.facts, outcome, observation.now, self.leader_term)

    def summarise(self, observation: Observation[JobFacts], outcome: Outcome, actions: Sequence[Action]) -> Status:
        """See `core/status/summarise.py`."""
        return summarise(observation.job, observation.previous, observation.facts, outcome, actions, observation.now)

    def next_requeue_at(self, observation: Observation[JobFacts], outcome: Outcome) -> float | None:
        """See `core/decide.py`."""
        return next_requeue_at(observation.job, observation.facts, outcome, observation.now)

    def is_over(self, observation: Observation[JobFacts], outcome: Outcome, _: Sequence[Action]) -> bool:
        """Whether the outcome is decided and all agents have ended. Until then, agents need commands."""
        return outcome.ends_job and observation.facts.is_gone


@dataclass(frozen=True)
class NodeJobBackend:
    """The backend of one job: its nodes and their plan."""

    nodes: NodeBackend
    plan: NodePlan

    async def observe(self, job: Job, _: Status) -> JobFacts:
        """Observe the job's nodes."""
        return await self.nodes.observe(job)

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Execute the actions. Idempotent."""
        await self.nodes.apply(job, actions)


@dataclass(frozen=True)
class NodeJobs:
    """All jobs of a backend whose nodes run muster's agent, while this replica is the leader."""

    nodes: ClusterNodes
    leader_term: int

    def for_job(self, resource: JobResource, writer: ResourceWriter) -> NodeJobBackend:  # noqa: ARG002 - nodes need no resource
        """Return the backend of one job, for one reconcile."""
        return NodeJobBackend(self.nodes, NodePlan(self.leader_term))

    async def finalize(self, resource: JobResource, writer: ResourceWriter) -> Requeue:  # noqa: ARG002 - nodes need no cleanup
        """Do nothing: Kubernetes deletes the objects of a deleted resource."""
        return Requeue(None, is_over=True)

    def forget(self, job_uid: str) -> None:
        """Drop the state of a job whose resource was deleted."""
        self.nodes.forget(job_uid)

    def close(self) -> None:
        """Do nothing: nodes continue without an operator."""
