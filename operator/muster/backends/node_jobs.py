"""The decisions about jobs whose nodes run muster's agent: the Kubernetes and the local backend share it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeAlias

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.base import JobResource, Observation, Requeue, ResourceWriter
from muster.core.actions import Action
from muster.core.decide import decide, find_requeue_time
from muster.core.edited_source import RequestedSource
from muster.core.fact_completion import complete_facts
from muster.core.facts import JobFacts
from muster.core.judge import judge
from muster.core.membership.members import set_node_count
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

    async def find_source(self, job: Job, name: str) -> RequestedSource:
        """Find the edited code in ConfigMap `name`, and check that it is the job's."""
        ...

    def forget(self, job_uid: str) -> None:
        """Drop the state of a job whose resource was deleted."""
        ...


@dataclass(frozen=True)
class NodeDecisions:
    """The decisions about a job. Agents refuse commands with an earlier `leader_term`."""

    leader_term: int

    def derive_facts(self, observation: Observation[JobFacts]) -> Observation[JobFacts]:
        """Apply `COMPLETION_STEPS` of `core/fact_completion.py`, and choose the members of the attempt."""
        job, previous, now = observation.job, observation.previous, observation.now
        facts = complete_facts(job, previous, observation.facts, now)
        return Observation(set_node_count(job, facts), previous, facts, now)

    def judge(self, observation: Observation[JobFacts]) -> Outcome:
        """See `core/judge.py`."""
        return judge(observation.job, observation.previous, observation.facts, observation.now)

    def decide(self, observation: Observation[JobFacts], outcome: Outcome) -> tuple[Action, ...]:
        """See `core/decide.py`."""
        return decide(observation.job, observation.facts, outcome, observation.now, self.leader_term)

    def summarise(self, observation: Observation[JobFacts], outcome: Outcome, actions: Sequence[Action]) -> Status:
        """See `core/status/summarise.py`."""
        return summarise(observation.job, observation.previous, observation.facts, outcome, actions, observation.now)

    def find_requeue_time(self, observation: Observation[JobFacts], outcome: Outcome) -> float | None:
        """See `core/decide.py`."""
        return find_requeue_time(observation.job, observation.facts, outcome, observation.now)

    def is_over(self, observation: Observation[JobFacts], outcome: Outcome, _: Sequence[Action]) -> bool:
        """Whether the outcome is decided and all agents have ended. Until then, agents need commands."""
        return outcome.ends_job and observation.facts.has_no_agent


FindSource: TypeAlias = Callable[[Job, Status], Awaitable[RequestedSource]]


@dataclass(frozen=True)
class NodeJobBackend:
    """The backend of one job: its nodes, and the decisions about them.

    `restart_request` is the value of the job's annotation. `find_source` finds the edited code that another annotation
    names.
    """

    nodes: NodeBackend
    decisions: NodeDecisions
    restart_request: str | None = None
    find_source: FindSource | None = None

    async def observe(self, job: Job, previous: Status) -> JobFacts:
        """Observe the job's nodes."""
        return replace(
            await self.nodes.observe(job),
            restart_request=self.restart_request,
            requested_source=None if self.find_source is None else await self.find_source(job, previous),
        )

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Execute the actions. Idempotent."""
        await self.nodes.apply(job, actions)


@dataclass(frozen=True)
class NodeJobs:
    """All jobs of a backend whose nodes run muster's agent, while this replica is the leader."""

    nodes: ClusterNodes
    leader_term: int

    def for_job(self, resource: JobResource, writer: ResourceWriter) -> NodeJobBackend:  # noqa: ARG002 - nodes change no resource
        """Return the backend of one job, for one reconcile."""
        name = resource.source_name
        find_source = None if name is None else partial(self._find_source, name)
        return NodeJobBackend(self.nodes, NodeDecisions(self.leader_term), resource.restart_request, find_source)

    async def _find_source(self, name: str, job: Job, previous: Status) -> RequestedSource:
        recorded = previous.source
        # The status has only names of ConfigMaps that were checked.
        if recorded is not None and recorded.config_map == name:
            return RequestedSource(name, recorded.sha256)
        return await self.nodes.find_source(job, name)

    async def finalize(self, resource: JobResource, writer: ResourceWriter) -> Requeue:  # noqa: ARG002 - nodes need no cleanup
        """Do nothing: Kubernetes deletes the objects of a deleted resource."""
        return Requeue(None, is_over=True)

    def forget(self, job_uid: str) -> None:
        """Drop the state of a job whose resource was deleted."""
        self.nodes.forget(job_uid)

    def close(self) -> None:
        """Do nothing: nodes continue without an operator."""
