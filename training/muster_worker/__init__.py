"""muster's package in the training image: the agent, wrapper and hook. Scripts call `report`, `phase`, `stopping`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster_worker.rank.phases import phase as phase
    from muster_worker.rank.stopping import stopping as stopping
    from muster_worker.rank.user_report import report as report


def __getattr__(name: str) -> object:
    # Import on demand: a rank's wrapper imports this package, and its start-up delays the training.
    if name == "report":
        from muster_worker.rank.user_report import report

        return report
    if name == "stopping":
        from muster_worker.rank.stopping import stopping

        return stopping
    if name == "phase":
        from muster_worker.rank.phases import phase

        return phase
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
