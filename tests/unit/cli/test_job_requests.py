"""What `muster suspend`, `resume` and `restart` change, when it is done, and what they refuse."""

from collections.abc import Callable

import pytest

from muster.api.document import JSON
from muster.api.names import RESTART_ANNOTATION
from muster.api.status.restarts import RestartRequest
from muster.api.status.status import Condition, RankStatus, Status
from muster.api.yaml.serialise import serialise_status
from muster.cli.board.observed_job import ObservedJob, read_observed_job
from muster.cli.errors import BadInput
from muster.cli.jobs.requests import RequestedChange, make_restart, make_resumption, make_suspension
from muster.objects.kubernetes.kinds import Object

VALUE = "2026-11-23T13:30:00.123Z"
RUNS = Status(
    observed_generation=3,
    phase="Running",
    attempt=1,
    start_time="2026-11-23T13:00:00Z",
    ranks=RankStatus(world=4, running=4, ready="4/4"),
)
STARTS = RUNS.model_copy(update={"phase": "Starting", "ranks": RankStatus(world=4, running=3, ready="3/4")})


def ended(kind: str) -> Status:
    condition = Condition(type=kind, status="True", reason="x", last_transition_time="2026-11-23T13:00:00Z")
    return RUNS.model_copy(update={"conditions": (condition,)})


def resource(status: Status, **spec: JSON) -> Object:
    metadata: dict[str, JSON] = {"name": "vit", "uid": "u-1", "generation": 3}
    return {"metadata": metadata, "spec": spec, "status": serialise_status(status)}


def observed(status: Status, **changes: object) -> ObservedJob:
    return read_observed_job(resource(status.model_copy(update=changes)))


def test_a_restart_is_done_when_its_own_request_is_served_and_all_ranks_run() -> None:
    change = make_restart(resource(RUNS), VALUE)
    assert change.fields == {"metadata": {"annotations": {RESTART_ANNOTATION: VALUE}}}
    served = RestartRequest(value=VALUE)
    assert not change.is_done(observed(RUNS))
    assert not change.is_done(observed(RUNS, restart_request=RestartRequest(value="another")))
    assert not change.is_done(observed(RUNS, restart_request=RestartRequest(value=VALUE, stopping_since=VALUE)))
    assert not change.is_done(observed(STARTS, restart_request=served))
    assert change.is_done(observed(RUNS, restart_request=served))


def test_a_resumption_is_done_when_all_ranks_run_with_the_changed_spec() -> None:
    change = make_resumption(resource(RUNS, suspend=True))
    assert change.fields == {"spec": {"suspend": False}}
    assert not change.is_done(observed(RUNS, observed_generation=2))
    assert not change.is_done(observed(STARTS))
    assert change.is_done(observed(RUNS))


def test_a_suspension_is_done_when_the_condition_is_true() -> None:
    change = make_suspension(resource(RUNS))
    assert change.fields == {"spec": {"suspend": True}}
    assert not change.is_done(observed(RUNS))
    # The job is still suspended by the spec before its last resumption.
    assert not change.is_done(observed(ended("Suspended"), observed_generation=2))
    assert change.is_done(observed(ended("Suspended")))


def restart(source: Object) -> RequestedChange:
    return make_restart(source, VALUE)


@pytest.mark.parametrize(
    ("make_change", "source", "sentence"),
    [
        (restart, resource(RUNS, backend="SageMaker"), "`muster suspend vit`, then `muster resume vit`"),
        (restart, resource(RUNS, suspend=True), "is suspended; `muster resume vit` starts its ranks"),
        (restart, resource(Status(phase="Queued", message="waits")), "have not started yet (Queued: waits)"),
        (restart, resource(ended("Failed")), "has ended (Running), so it can't be restarted"),
        (make_resumption, resource(ended("Complete"), suspend=True), "so it can't be resumed"),
        (make_resumption, resource(RUNS), "is not suspended (Running: "),
        (make_suspension, resource(ended("Complete")), "so it can't be suspended"),
    ],
)
def test_what_can_t_be_done_is_refused(
    make_change: Callable[[Object], RequestedChange], source: Object, sentence: str
) -> None:
    with pytest.raises(BadInput) as raised:
        make_change(source)
    assert "DistributedTrainingJob vit" in str(raised.value)
    assert sentence in str(raised.value)
