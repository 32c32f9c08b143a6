"""The message about a job whose pods muster deleted because not all could be scheduled."""

from muster.api.timestamps import format_seconds
from muster.core.gang_release import GANG_RELEASED, GangRelease
from muster.core.status.problems import shared_problems
from muster.core.status.views import StatusInput


def released(status_input: StatusInput) -> str | None:
    """The message while the gang is released; None otherwise."""
    release = status_input.outcome.release
    if release is None or not release.is_under_way(status_input.facts, status_input.now):
        return None
    # Resource shortages are visible only while the pods exist, so prefer the previous message of this release.
    return _previous_message(status_input, release) or _new_message(status_input, release)


def _previous_message(status_input: StatusInput, release: GangRelease) -> str | None:
    placement = status_input.previous.placement
    if placement is None or placement.releases != release.count:
        return None
    conditions = status_input.previous.conditions
    return next(
        (
            condition.message
            for condition in conditions
            if condition.type == "Scheduled" and condition.reason == GANG_RELEASED
        ),
        None,
    )


def _new_message(status_input: StatusInput, release: GangRelease) -> str:
    nodes = status_input.facts.nodes
    shared = shared_problems((node for node in nodes if not node.is_placed), len(nodes))
    missing = "; ".join(entry.sentence for entry in shared)
    times = "" if release.count == 1 else f", for the {_ordinal(release.count)} time"
    sentence = (
        f"Not all {len(nodes)} nodes were scheduled within startupTimeoutSeconds"
        f" ({status_input.job.spec.startup_timeout_seconds} s): muster deletes their pods{times} and creates them again"
        f" at {format_seconds(release.until)}"
    )
    return f"{sentence}; {missing}" if missing else sentence


def _ordinal(count: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{'th' if count % 100 in (11, 12, 13) else ending}"
