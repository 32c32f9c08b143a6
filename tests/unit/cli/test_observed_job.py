import io

from rich.console import Console

from muster.api.document import JSON
from muster.api.status.progress import Progress
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.status import Condition, NodeCounts, RankStatus, Status
from muster.api.yaml.serialise import serialise_status
from muster.cli.board.board import draw_board
from muster.cli.board.observed_job import (
    NOT_RECONCILED,
    ObservedJob,
    build_view,
    compute_elapsed_seconds,
    read_observed_job,
    read_procs_per_node,
)

CREATED = "2026-11-21T05:00:00Z"
CREATED_AT = 1795237200.0
OVER = Condition(type="Failed", status="True", reason="RankFailed", last_transition_time=CREATED)


def resource(status: Status | None) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {"name": "digits", "namespace": "default", "uid": "u", "creationTimestamp": CREATED}
    # The board shows the operator's status even if it can't read the spec.
    result: dict[str, JSON] = {"metadata": metadata, "spec": {"field": "of a later version"}}
    if status is not None:
        result["status"] = serialise_status(status)
    return result


def observed_job(**fields: object) -> ObservedJob:
    return read_observed_job(resource(Status.model_validate(fields)))


def test_a_job_without_a_status_says_so() -> None:
    assert read_observed_job(resource(None)).status.message == NOT_RECONCILED
    accepted = Condition(type="Accepted", status="True", reason="Valid", last_transition_time=CREATED)
    assert observed_job(conditions=(accepted,)).status.message == ""


def test_a_status_that_is_too_large_is_not_called_missing() -> None:
    too_large: dict[str, JSON] = {**resource(None), "status": {"ranks": [0] * 10_000}}
    message = read_observed_job(too_large).status.message
    assert message == "its status can't be read (holds more than 10000 values)"


def test_no_text_of_an_edited_status_controls_the_terminal() -> None:
    command = "\x1b]0;owned\x07 \x1b[2J\u202e"
    over = Condition(type="Failed", status="True", reason=command, message=command, last_transition_time=CREATED)
    record = RestartRecord(attempt=1, reason=command, message=command, counts_as="Failure", at=CREATED)
    seen = observed_job(
        phase=command,
        message=command,
        conditions=(over,),
        progress=Progress(metrics={command: 1.0}),
        restarts=Restarts(total=1, failures=1, disruptions=0, replacement=0, history=(record,)),
    )
    stream = io.StringIO()
    Console(file=stream, width=80, force_terminal=False).print(draw_board(build_view(seen, 0.0), 80, 24))
    assert "owned" in stream.getvalue()
    assert all(line.isprintable() for line in [*stream.getvalue().splitlines(), *seen.status.model_dump_json().split()])
    assert seen.is_over


def test_time_counts_from_the_creation_until_the_ranks_start_and_ends_with_the_job() -> None:
    assert compute_elapsed_seconds(observed_job(), CREATED_AT + 7) == 7
    assert compute_elapsed_seconds(observed_job(start_time="2026-11-21T05:01:00Z"), CREATED_AT + 67) == 7
    over = observed_job(start_time="2026-11-21T05:01:00Z", completion_time="2026-11-21T05:03:00Z", conditions=(OVER,))
    assert (over.is_over, compute_elapsed_seconds(over, CREATED_AT + 10**6)) == (True, 120)


def test_a_clock_that_is_behind_the_clusters_shows_no_negative_time() -> None:
    assert compute_elapsed_seconds(observed_job(), CREATED_AT - 5) == 0


def test_a_job_is_refused_as_long_as_its_spec_is_the_one_that_was_looked_at() -> None:
    source = resource(Status(phase="Refused", message="no", observed_generation=2))
    verdicts = [read_observed_job({**source, "metadata": {"generation": number}}).is_refused for number in (2, 3)]
    assert verdicts == [True, False]
    assert not observed_job(phase="Running").is_refused


def test_ranks_are_assigned_to_their_nodes_without_the_spec() -> None:
    ranks = RankStatus(world=8, running=8, ready="8/8")
    assert read_procs_per_node(Status(nodes=NodeCounts(desired=2, ready=2), ranks=ranks)) == 4
    assert read_procs_per_node(Status()) == 1


def test_a_status_without_process_ids_has_no_column_for_them() -> None:
    nodes, ranks = NodeCounts(desired=1, ready=1), RankStatus(world=1, running=1, ready="1/1")
    view = build_view(observed_job(phase="Running", message="The rank runs", nodes=nodes, ranks=ranks), CREATED_AT)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    with console.capture() as capture:
        console.print(draw_board(view, 80, 24))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert lines[3] == "RANK  NODE      STATE      STEP  BEHIND"
    assert len(lines) == 5
