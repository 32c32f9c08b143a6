"""What the operator did for a job, and what came of it: kept for the job's next turn, and found anew by another one."""

import math
from dataclasses import dataclass, field

from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.core.failure.lost_nodes import LOST_SECONDS
from muster.objects.kubernetes.observations import is_cut_off
from muster.objects.kubernetes.pods import PodView
from muster.render.kubernetes.spec_hash import spec_hash
from muster_worker.contract.schema import Command

FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 30.0
"""What refused a pod may let it pass later: a quota that is freed, a webhook that is mended."""

_MAX_DOUBLINGS = 10

REMOVAL_SECONDS = 30.0
"""After that a deletion that is still wanted is asked for again."""


@dataclass(frozen=True)
class Sent:
    """The last command of the agent in a pod, and when it was given (Unix seconds)."""

    pod_uid: str
    command: Command
    at: float


@dataclass(frozen=True)
class Removal:
    """A deletion that was asked for."""

    at: float
    grace_seconds: int


@dataclass
class Ledger:
    """One job's. `held` says why nodes could not be made, `authority` what the agents were last told to trust.

    `known_since` is when this operator first saw the job, `lost` since when pods (by uid) are lost with their machines.
    `taken` are the highest replacements of nodes whose name a pod of another job has that is lost with its machine.
    Times are Unix seconds.
    """

    sent: dict[int, Sent] = field(default_factory=dict)
    held: dict[int, Problem] = field(default_factory=dict)
    removed: dict[str, Removal] = field(default_factory=dict)
    lost: dict[str, float] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    known_since: float = math.inf
    authority: str | None = None
    backoff_until: float = 0.0
    _awaited: dict[str, float] = field(default_factory=dict)
    _refusal: Problem | None = None
    _refused_generation: int = 0
    _rehearsed_generation: int = 0
    _failures: int = 0
    _spec: tuple[int, str] = (0, "")

    def spec_hash(self, job: Job) -> str:
        """The hash of the job's spec, worked out once for each generation of the resource."""
        if self._spec[0] != job.metadata.generation:
            self._spec = (job.metadata.generation, spec_hash(job))
        return self._spec[1]

    def refusal(self, generation: int) -> Problem | None:
        """Why nothing can be made of the resource's `generation`."""
        return self._refusal if generation == self._refused_generation else None

    def refuse(self, generation: int, problem: Problem) -> None:
        """Nothing can be made of the resource as it is in `generation`."""
        self._refusal, self._refused_generation = problem, generation
        self.held = {}

    def is_rehearsed(self, generation: int) -> bool:
        """Whether the API server would have taken the pods of this generation of the resource."""
        return generation == self._rehearsed_generation

    def rehearsed(self, generation: int) -> None:
        """The API server would take them."""
        self._rehearsed_generation = generation

    def hold(self, problems: dict[int, Problem], now: float) -> None:
        """These nodes, and no others, were refused something that may pass; each time in a row the pause is longer."""
        self.held = problems
        if not problems:
            self.backoff_until, self._failures = 0.0, 0
            return
        self.backoff_until = now + min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2**self._failures)
        self._failures = min(self._failures + 1, _MAX_DOUBLINGS)

    def is_left_behind(self, pod: PodView, now: float) -> bool:
        """Whether a pod of another job, whose name is wanted, stays only because its machine doesn't delete it.

        It is asked again and again for the same pod, and counts from the first time.
        """
        if pod.asked_to_go_at is None:
            return False
        gone_by = self._awaited.setdefault(pod.uid, now + (pod.leaving_seconds or 0))
        return now >= gone_by + (0.0 if is_cut_off(pod) else LOST_SECONDS)

    def is_removed(self, pod: PodView, grace_seconds: int, now: float) -> bool:
        """Whether the pod's deletion was asked for a moment ago, with no more patience than now."""
        before = self.removed.get(pod.uid)
        return before is not None and before.grace_seconds <= grace_seconds and now - before.at < REMOVAL_SECONDS
