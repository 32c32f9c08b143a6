"""An unreadable status gets a message and a condition, and keeps all other fields."""

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.core.status.unreconciled.unreadable_status import make_unreadable_status

PROBLEMS = (FieldProblem("status.startTime", 'found "x"; a time is expected'),)
NOW = 1_763_697_900.0
NOW_TEXT = "2025-11-21T04:05:00Z"
COMPLETE_CONDITION: JSON = {"type": "Complete", "status": "true"}
MESSAGE = (
    "The status can't be read, and muster ignores the job until you correct it: kubectl edit --subresource=status: "
    'status.startTime: found "x"; a time is expected'
)


def stalled_condition(status: str = "True", at: str = NOW_TEXT) -> dict[str, JSON]:
    return {
        "type": "Stalled",
        "status": status,
        "reason": "StatusUnreadable",
        "message": MESSAGE,
        "lastTransitionTime": at,
        "observedGeneration": 3,
    }


def unreadable_status(stored: dict[str, JSON]) -> dict[str, JSON]:
    return make_unreadable_status(stored, PROBLEMS, 3, NOW)


def test_all_fields_stay() -> None:
    stored: dict[str, JSON] = {"startTime": "x", "new": [1], "conditions": [COMPLETE_CONDITION]}
    assert unreadable_status(stored) == {
        **stored,
        "message": MESSAGE,
        "conditions": [COMPLETE_CONDITION, stalled_condition()],
    }


def test_reporting_the_same_problem_again_changes_nothing() -> None:
    status = unreadable_status({"startTime": "x"})
    assert make_unreadable_status(status, PROBLEMS, 3, NOW + 60) == status


def test_the_condition_keeps_its_transition_time() -> None:
    before = "2025-11-21T03:00:00Z"
    assert unreadable_status({"conditions": [stalled_condition("True", before), COMPLETE_CONDITION]})["conditions"] == [
        COMPLETE_CONDITION,
        stalled_condition("True", before),
    ]
    assert unreadable_status({"conditions": [stalled_condition("False", before)]})["conditions"] == [
        stalled_condition()
    ]


def test_a_full_or_invalid_list_of_conditions_gets_only_the_message() -> None:
    full: list[JSON] = [{"type": f"T{number}"} for number in range(16)]
    assert unreadable_status({"conditions": full}) == {"conditions": full, "message": MESSAGE}
    assert unreadable_status({"conditions": "none"}) == {"conditions": "none", "message": MESSAGE}
