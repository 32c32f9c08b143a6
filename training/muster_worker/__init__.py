"""muster's package in the training image: the agent, the wrapper and hook of ranks, and `report` for scripts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster_worker.rank.user import report as report


def __getattr__(name: str) -> object:
    # Import on demand: a rank's wrapper imports this package, and its start-up delays the training.
    if name == "report":
        from muster_worker.rank.user import report

        return report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
