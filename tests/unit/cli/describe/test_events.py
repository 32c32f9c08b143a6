"""The events that `muster describe` shows."""

from muster.api.document import JSON
from muster.api.status.status import Status
from muster.cli.board.observed_job import ObservedJob
from muster.cli.describe.events import MAX_GROUPS, group_events, select_pod_events

CREATED_AT = 1795237200.0
JOB = ObservedJob("vit", "u", 1, CREATED_AT, Status())


def event(name: str, message: str, second: int, **fields: JSON) -> dict[str, JSON]:
    times: dict[str, JSON] = {"lastTimestamp": f"2026-11-21T05:00:{second:02}Z"}
    return {
        "type": "Warning",
        "reason": "BackOff",
        "message": message,
        "involvedObject": {"kind": "Pod", "name": name},
        **times,
        **fields,
    }


def test_events_of_several_pods_are_one_group() -> None:
    (group,) = group_events(
        [
            event("vit-1-0", "can't pull image for vit-1-0", 3, count=4),
            event("vit-0-0", "can't pull image for vit-0-0", 9),
            event("vit-0-0", "can't pull image for vit-0-0", 5, count=2),
        ]
    )
    assert (group.objects, group.count, group.at) == (("vit-0-0", "vit-1-0"), 7, CREATED_AT + 9)
    assert group.message == "can't pull image for vit-0-0"


def test_the_latest_events_are_kept_oldest_first() -> None:
    events = [event("vit-0-0", f"event {number}", number) for number in range(40)]
    messages = [group.message for group in group_events(reversed(events))]
    assert messages == [f"event {number}" for number in range(40 - MAX_GROUPS, 40)]


def test_events_of_the_newer_api() -> None:
    series: dict[str, JSON] = {"count": 5, "lastObservedTime": "2026-11-21T05:00:30.000000Z"}
    (group,) = group_events([event("vit-0-0", "x", 1, lastTimestamp=None, series=series)])
    assert (group.count, group.at) == (5, CREATED_AT + 30)
    (single,) = group_events([event("vit-0-0", "x", 1, lastTimestamp=None, eventTime="2026-11-21T05:00:02.5Z")])
    assert (single.count, single.at) == (1, CREATED_AT + 2.5)


def test_events_without_fields_and_with_control_characters() -> None:
    (empty,) = group_events([{}])
    assert (empty.message, empty.at, empty.count) == ("", 0.0, 1)
    (escaped,) = group_events([event("vit-0-0", "\x1b[2Jx\n", 1)])
    assert escaped.message == "[2Jx"


def test_only_events_of_this_jobs_pods() -> None:
    own = event("vit-0-12", "x", 1)
    others = [
        event("vit-0-0-1", "a pod of the job vit-0", 1),
        event("vit-x-0", "x", 1),
        event("bert-0-0", "x", 1),
        event("vit-0-0", "an earlier job's", 1, lastTimestamp="2026-11-21T04:59:59Z"),
    ]
    assert select_pod_events([*others, own], JOB) == (own,)
