"""The numbers of current jobs and ranks, as sums over all jobs."""

from collections import Counter
from dataclasses import dataclass, field

from muster.api.status.rules import MAX_RANKS
from muster.api.status.status import REFUSED, RESTARTING, Status
from muster.core.metrics.reasons import OTHER
from muster.core.status.views import FAILED, PENDING, RUNNING, STARTING, STOPPED, SUCCEEDED, UNKNOWN

PHASES = frozenset(
    (
        *("Pending", "Queued", "Starting", "Running", RESTARTING, "Suspended", "Stopping"),
        *(REFUSED, "Succeeded", "Failed"),
    )
)
STATES = frozenset((PENDING, STARTING, RUNNING, SUCCEEDED, FAILED, STOPPED, UNKNOWN))


@dataclass
class Totals:
    """Sums over jobs. The keys are (namespace, backend, phase) and (namespace, backend, state)."""

    jobs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    ranks: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add_job(self, namespace: str, backend: str, status: Status) -> None:
        """Add one job. The ranks of a job that has ended don't count."""
        phase = status.phase if status.phase in PHASES else OTHER
        self.jobs[namespace, backend, phase] += 1
        if status.ranks is None or status.final_condition is not None:
            return
        for entry in status.ranks.by_state[: len(STATES)]:
            state = entry.state if entry.state in STATES else OTHER
            self.ranks[namespace, backend, state] += min(max(entry.count, 0), MAX_RANKS)

    def add_job_waiting_for_memory(self, namespace: str, backend: str) -> None:
        """Add a job that waits for memory: muster has dropped its spec and its status."""
        self.jobs[namespace, backend, REFUSED] += 1
