"""An unreadable status gets a message about it, and loses nothing."""

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.core.status.unreadable_status import make_unreadable_status

PROBLEMS = (FieldProblem("status.startTime", 'found "x"; a time is expected'),)
NOW = 1_763_697_900.0
AT = "2025-11-21T04:05:00Z"
OTHER: JSON = {"type": "Complete", "status": "true"}
WORD = (
    "The status can't be read, and muster ignores the job until you correct it: kubectl edit --subresource=status: "
    'status.startTime: found "x"; a time is expected'
)


def stalled(status: str = "True", at: str = AT) -> dict[str, JSON]:
    return {
        "type": "Stalled",
        "status": status,
        "reason": "StatusUnreadable",
        "message": WORD,
        "lastTransitionTime": at,
        "observedGeneration": 3,
    }


def unreadable_status(written: dict[str, JSON]) -> dict[str, JSON]:
    return make_unreadable_status(written, PROBLEMS, 3, NOW)


def test_all_that_was_there_stays() -> None:
    written: dict[str, JSON] = {"startTime": "x", "new": [1], "conditions": [OTHER]}
    assert unreadable_status(written) == {**written, "message": WORD, "conditions": [OTHER, stalled()]}


def test_telling_it_again_changes_nothing() -> None:
    once = unreadable_status({"startTime": "x"})
    assert make_unreadable_status(once, PROBLEMS, 3, NOW + 60) == once


def test_it_has_stalled_since_it_did() -> None:
    before = "2025-11-21T03:00:00Z"
    assert unreadable_status({"conditions": [stalled("True", before), OTHER]})["conditions"] == [
        OTHER,
        stalled("True", before),
    ]
    assert unreadable_status({"conditions": [stalled("False", before)]})["conditions"] == [stalled()]


def test_where_no_condition_has_a_place_the_message_tells() -> None:
    full: list[JSON] = [{"type": f"T{number}"} for number in range(16)]
    assert unreadable_status({"conditions": full}) == {"conditions": full, "message": WORD}
    assert unreadable_status({"conditions": "none"}) == {"conditions": "none", "message": WORD}
