"""The outcome of a job. `judge` derives it from the facts; `decide` and `summarise` use it."""

from dataclasses import dataclass
from enum import StrEnum

from muster.api.status.source import SourceStatus
from muster.core.failure.failure import Failure
from muster.core.gang_release import GangRelease
from muster.core.restarts import LastRestart, Restart
from muster.core.steps.hangs import Hang
from muster.core.steps.stragglers import Stragglers

DEADLINE_EXCEEDED = "DeadlineExceeded"
STARTUP_TIMEOUT = "StartupTimeout"
STOP_REQUESTED = "StopRequested"
SUCCEEDED = "AllRanksSucceeded"
WORLD_SIZE_MISMATCH = "WorldSizeMismatch"
NETWORK_MISMATCH = "NetworkMismatch"
RANKS_LOST = "RanksLost"


class Verdict(StrEnum):
    """The result of a job."""

    UNDECIDED = "Undecided"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"
    SUSPENDED = "Suspended"
    RESTARTING = "Restarting"  # another attempt follows, after a failure or a request


@dataclass(frozen=True)
class Outcome:
    """The verdict on an attempt, its reason, and its time `at`. All times are Unix seconds; None if never.

    `message` describes the reason NETWORK_MISMATCH. `failure` has the root causes if ranks, launchers or agents failed.
    A verdict that comes only from an earlier status has neither `at` nor `failure`.

    `is_idle` is set while no rank runs and no rank can start, so that the verdict is final. `has_started` is set once
    the nodes received the start command. `attempt` is the number of that start, or of the next one. `last_restart` is
    the restart before this attempt. `hang` has the ranks that hang, and `stragglers` the slow ranks. `avoided_nodes`
    are the Kubernetes nodes that new pods avoid. `source` is the edited code of this attempt.

    `restart` is set for the verdict Restarting. `no_restart_reason` is why no attempt follows a failure.

    `cause_deadline` is until when muster waits for the root cause of a failure. `resize_at` is when an elastic job may
    continue with another number of nodes. `active_since` is when the job was created or last resumed.
    `startup_deadline` is None after the start. `release` is the gang's latest release before its start, and
    `release_at` the time of the next release. `final_since` is when the status recorded the end of the job.
    `expires_at` is when ttlSecondsAfterFinished ends.
    """

    verdict: Verdict
    reason: str = ""
    at: float | None = None
    message: str = ""
    failure: Failure | None = None
    is_idle: bool = False
    has_started: bool = False
    attempt: int = 1
    last_restart: LastRestart | None = None
    hang: Hang | None = None
    stragglers: Stragglers | None = None
    avoided_nodes: tuple[str, ...] = ()
    source: SourceStatus | None = None
    restart: Restart | None = None
    no_restart_reason: str = ""
    active_since: float = 0.0
    active_deadline: float | None = None
    startup_deadline: float | None = None
    cause_deadline: float | None = None
    resize_at: float | None = None
    release: GangRelease | None = None
    release_at: float | None = None
    final_since: float | None = None
    expires_at: float | None = None

    @property
    def lowest_replacement(self) -> int:
        """The lowest replacement number that a new pod may have."""
        released = 0 if self.release is None else self.release.replacement
        return released if self.last_restart is None else max(released, self.last_restart.replacement)

    @property
    def is_decided(self) -> bool:
        """Whether the attempt is over or has to end."""
        return self.verdict is not Verdict.UNDECIDED

    @property
    def is_restart_due(self) -> bool:
        """Whether no rank of the attempt runs, so that the status can record the next attempt."""
        return self.verdict is Verdict.RESTARTING and self.is_idle

    @property
    def is_restart_requested(self) -> bool:
        """Whether another attempt follows because of a request or a resize, and not because of a failure."""
        return self.verdict is Verdict.RESTARTING and self.failure is None

    @property
    def ends_job(self) -> bool:
        """Whether no other attempt follows, unless a suspended job is resumed."""
        return self.verdict not in (Verdict.UNDECIDED, Verdict.RESTARTING)
