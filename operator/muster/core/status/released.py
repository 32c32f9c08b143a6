"""The message about a job whose pods muster deleted because not all could be scheduled."""

from muster.api.timestamps import to_seconds
from muster.core.gang_release import GANG_RELEASED, GangRelease
from muster.core.status.problems import shared_problems
from muster.core.status.views import Picture


def released(picture: Picture) -> str | None:
    """The sentence while the pods are deleted; None at any other time."""
    release = picture.outcome.release
    if release is None or not release.is_under_way(picture.facts, picture.now):
        return None
    # The missing resources show only while the pods exist; an earlier sentence still holds.
    return _release_sentence(picture, release) or _sentence(picture, release)


def _release_sentence(picture: Picture, release: GangRelease) -> str | None:
    placement = picture.previous.placement
    if placement is None or placement.releases != release.count:
        return None
    conditions = picture.previous.conditions
    return next((one.message for one in conditions if one.type == "Scheduled" and one.reason == GANG_RELEASED), None)


def _sentence(picture: Picture, release: GangRelease) -> str:
    nodes = picture.facts.nodes
    shared = shared_problems((node for node in nodes if not node.is_placed), len(nodes))
    missing = "; ".join(entry.sentence for entry in shared)
    times = "" if release.count == 1 else f", for the {_ordinal(release.count)} time"
    head = (
        f"Not all {len(nodes)} nodes were scheduled within startupTimeoutSeconds"
        f" ({picture.job.spec.startup_timeout_seconds} s): muster deletes their pods{times} and creates them again at"
        f" {to_seconds(release.until)}"
    )
    return f"{head}; {missing}" if missing else head


def _ordinal(count: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{'th' if count % 100 in (11, 12, 13) else ending}"
