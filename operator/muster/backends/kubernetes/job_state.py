"""The backend's state of a job between two reconciles. It is only in memory.

A new leader begins with an empty state. It can observe most of it again, but not the backoff, nor a disruption whose
announcement the cluster has withdrawn.
"""

import math
from dataclasses import dataclass, field, replace

from muster.api.spec.job import Job
from muster.core.edited_source import RequestedSource
from muster.core.facts import ProcessFacts, ProcessState
from muster.core.failure.problems import LOST_SECONDS
from muster.core.problem import Problem
from muster.objects.kubernetes.observations import is_unreachable
from muster.objects.kubernetes.pods import PodView
from muster.render.kubernetes.spec_hash import hash_spec
from muster_worker.contract.schema import Command

FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 30.0
"""Retry at least this often: the cause of a refusal may end, such as an exhausted quota or a broken webhook."""

_MAX_DOUBLINGS = 10

DELETION_RETRY_SECONDS = 30.0
"""The delay before a deletion is requested again."""


@dataclass(frozen=True)
class SentCommand:
    """The last command for the agent in a pod, and its time (Unix seconds)."""

    pod_uid: str
    command: Command
    at: float


@dataclass(frozen=True)
class PodDeletion:
    """The last request to delete a pod, and its time (Unix seconds)."""

    at: float
    grace_seconds: int


@dataclass
class JobState:
    """The state of one job. Times are Unix seconds."""

    first_seen_at: float = math.inf
    """When this operator first observed the job."""

    sent_commands: dict[int, SentCommand] = field(default_factory=dict)
    """The last command to each node."""

    pod_problems: dict[int, Problem] = field(default_factory=dict)
    """The reasons why pods can't be created, by node."""

    deletions: dict[str, PodDeletion] = field(default_factory=dict)
    """The last deletion requests, by pod uid."""

    lost_since: dict[str, float] = field(default_factory=dict)
    """When the pods' Kubernetes nodes were lost, by pod uid."""

    disruptions: dict[str, ProcessFacts] = field(default_factory=dict)
    """The pods with an announced disruption (a drain, an eviction or a preemption), by pod uid."""

    taken_replacement_numbers: dict[int, int] = field(default_factory=dict)
    """By node: the highest replacement number that is taken. A lost pod of an earlier job with the same name still has
    that pod name.
    """

    ca_bundle: str | None = None
    """The CA certificates in the agents' ConfigMap."""

    service_has_selector: bool = False
    """Whether muster has given the Service the selector that selects the job's pods."""

    service_checked_attempt: int = 1
    """The last attempt before which muster looked whether the Service still exists. It is new at the first one."""

    requested_source: RequestedSource | None = None
    """The edited code that the job's annotation named when muster last read its ConfigMap."""

    requested_source_read_at: float = 0.0
    """When muster last read the ConfigMap of `requested_source`."""

    source_problem: Problem | None = None
    """The reason why the ranks can't start with their edited code."""

    attempt_source: tuple[int, str] | None = None
    """(attempt, hash): the last edited code that muster tried to read in order to start an attempt."""

    attempt_source_read_at: float = 0.0
    """When muster last tried to read `attempt_source`."""

    backoff_until: float = 0.0
    """When muster creates the job's pods again after a refusal."""

    _deletion_deadlines: dict[str, float] = field(default_factory=dict)
    _refusal: Problem | None = None
    _refused_generation: int = 0
    _accepted_generation: int = 0
    _failures: int = 0
    _spec_hash_of_generation: tuple[int, str] = (0, "")

    def compute_spec_hash(self, job: Job) -> str:
        """Return the hash of the spec, computed once for each generation of the resource."""
        if self._spec_hash_of_generation[0] != job.metadata.generation:
            self._spec_hash_of_generation = (job.metadata.generation, hash_spec(job))
        return self._spec_hash_of_generation[1]

    def record_command(self, node: int, sent: SentCommand) -> None:
        """Record a command, unless the same command was sent to the same pod before."""
        previous = self.sent_commands.get(node)
        if previous is None or (previous.pod_uid, previous.command) != (sent.pod_uid, sent.command):
            self.sent_commands[node] = sent

    def expect_service_missing(self, attempt: int) -> None:
        """Look once at the start of this attempt whether a user has deleted the Service."""
        if attempt > self.service_checked_attempt:
            self.service_checked_attempt, self.service_has_selector = attempt, False

    def keep_disruption(self, pod_uid: str, process: ProcessFacts) -> ProcessFacts:
        """Return the pod's facts with its announced disruption.

        If the cluster has withdrawn the announcement, return it nevertheless, because muster already stops the ranks.
        """
        if process.disruption_announced_at is not None:
            self.disruptions[pod_uid] = process
            return process
        earlier = self.disruptions.get(pod_uid)
        if earlier is None or process.state not in (ProcessState.WAITING, ProcessState.RUNNING):
            return process
        problem = process.problem or earlier.problem
        return replace(process, problem=problem, disruption_announced_at=earlier.disruption_announced_at)

    def find_refusal(self, generation: int) -> Problem | None:
        """Return the reason why this `generation` of the resource can't run; None if it can."""
        return self._refusal if generation == self._refused_generation else None

    def record_refusal(self, generation: int, problem: Problem) -> None:
        """Record that this `generation` of the resource can't run."""
        self._refusal, self._refused_generation = problem, generation
        self.pod_problems = {}

    def has_accepted_pods(self, generation: int) -> bool:
        """Whether the API server has accepted one pod of each variant of this generation (see `nodeOverrides`)."""
        return generation == self._accepted_generation

    def record_accepted_pods(self, generation: int) -> None:
        """Record that the API server has accepted one pod of each variant of this generation."""
        self._accepted_generation = generation

    def record_problems(self, problems: dict[int, Problem], now: float) -> None:
        """Record the nodes' problems, and increase the backoff; without problems, reset it."""
        self.pod_problems = problems
        if not problems:
            self.backoff_until, self._failures = 0.0, 0
            return
        self.backoff_until = now + min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2**self._failures)
        self._failures = min(self._failures + 1, _MAX_DOUBLINGS)

    def is_leftover(self, pod: PodView, now: float) -> bool:
        """Whether this deleted pod of an earlier job of the same name exists only because its node doesn't respond.

        The pod's grace period counts from the first call of this method for the pod.
        """
        if pod.deletion_requested_at is None:
            return False
        deadline = self._deletion_deadlines.setdefault(pod.uid, now + (pod.deletion_grace_seconds or 0))
        return now >= deadline + (0.0 if is_unreachable(pod) else LOST_SECONDS)

    def is_deletion_pending(self, pod: PodView, grace_seconds: int, now: float) -> bool:
        """Whether the pod's deletion was requested recently, with the same or a shorter grace period."""
        last = self.deletions.get(pod.uid)
        return last is not None and last.grace_seconds <= grace_seconds and now - last.at < DELETION_RETRY_SECONDS
