"""The rows of `muster list` and `muster top`, from resources."""

from muster.api.document import JSON
from muster.api.status.progress import Progress
from muster.api.status.status import Condition, RankStatus, Status
from muster.api.status.stragglers import StragglerRecord
from muster.api.yaml.serialise import serialise_status
from muster.cli.board.observed_job import NOT_RECONCILED
from muster.cli.listing.rows import Attention, JobRow, read_row, sort_by_attention, sort_by_name
from muster.objects.kubernetes.kinds import Object

AT = "2026-11-26T03:00:00Z"
RUNS = Status(phase="Running", message="4 of 4 ranks run", ranks=RankStatus(world=4, running=4, ready="4/4"))


def make_resource(name: str, status: Status | None = None, namespace: str = "team-a") -> Object:
    metadata: dict[str, JSON] = {"name": name, "namespace": namespace, "creationTimestamp": AT}
    fields: dict[str, JSON] = {} if status is None else {"status": serialise_status(status)}
    return {"metadata": metadata, "spec": {"nodes": 2}, **fields}


def make_row(name: str, status: Status | None = None, namespace: str = "team-a") -> JobRow:
    return read_row(make_resource(name, status, namespace))


def condition(kind: str) -> tuple[Condition, ...]:
    return (Condition(type=kind, status="True", reason="X", last_transition_time=AT),)


def remaining(seconds: int) -> Status:
    return RUNS.model_copy(update={"progress": Progress(percent=10, estimated_remaining_seconds=seconds)})


STALLED = RUNS.model_copy(update={"conditions": condition("Stalled")})
SLOW_RANKS = StragglerRecord(attempt=1, count=1, ranks="3", median_seconds=0.2, message="rank 3 is slow", since=AT)
SLOW = RUNS.model_copy(update={"stragglers": SLOW_RANKS})
FAILED = Status(phase="Failed", conditions=(*condition("Stalled"), *condition("Failed")), completion_time=AT)
FAILED_LATER = FAILED.model_copy(update={"completion_time": "2026-11-26T04:00:00Z"})


def test_a_job_without_a_status() -> None:
    row = make_row("new")
    assert (row.backend, row.nodes, row.status.phase) == ("Kubernetes", 2, "Pending")
    assert row.status.message == NOT_RECONCILED
    assert row.attention is Attention.WAITING


def test_text_of_users_has_no_control_characters() -> None:
    resource: Object = {
        "metadata": {"name": "a\x1b[2Jb", "namespace": "\x07"},
        "spec": {"backend": "\x9b1m"},
        "status": {"message": "x\x1b]0;y\x07"},
    }
    row = read_row(resource)
    assert (row.name, row.namespace, row.backend, row.status.message) == ("a [2Jb", " ", " 1m", "x ]0;y ")


def test_values_of_wrong_types_are_missing() -> None:
    row = read_row({"metadata": 3, "spec": [], "status": "x"})
    assert (row.name, row.nodes, row.created_at, row.status.phase) == ("", None, None, "Pending")


def test_the_order_by_attention() -> None:
    rows = [
        make_row("succeeded", Status(phase="Succeeded", conditions=condition("Complete"), completion_time=AT)),
        make_row("suspended", Status(phase="Suspended")),
        make_row("queued", Status(phase="Queued")),
        make_row("unknown", RUNS),
        make_row("short", remaining(60)),
        make_row("long", remaining(6000)),
        make_row("failed", FAILED),
        make_row("failed-later", FAILED_LATER),
        make_row("refused", Status(phase="Refused")),
        make_row("restarting", Status(phase="Restarting")),
        make_row("slow", SLOW),
        make_row("stalled", STALLED),
    ]
    assert [row.name for row in sort_by_attention(rows)] == [
        "stalled",
        "failed-later",
        "failed",
        "refused",
        "restarting",
        "slow",
        "long",
        "short",
        "unknown",
        "queued",
        "succeeded",
        "suspended",
    ]


def test_the_order_by_name() -> None:
    rows = [make_row("b"), make_row("a", namespace="team-b"), make_row("a")]
    assert [(row.namespace, row.name) for row in sort_by_name(rows)] == [
        ("team-a", "a"),
        ("team-a", "b"),
        ("team-b", "a"),
    ]
