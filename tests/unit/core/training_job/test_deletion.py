"""The actions for a deleted resource whose training job may run."""

import pytest

from muster.api.status.status import Status
from muster.core.facts import Problem
from muster.core.training_job.attempt_state import CREATION_SECONDS
from muster.core.training_job.backoff import compute_retry_time
from muster.core.training_job.deletion import (
    GIVE_UP_SECONDS,
    DeletionStep,
    RemoveFinalizer,
    Stop,
    Wait,
    decide_deletion,
)
from muster.core.training_job.facts import FailureKind, TrainingFacts
from unit.core.training_job.training_world import (
    BEGUN,
    DONE,
    RUNNING,
    STOPPED,
    STOPPING,
    T0,
    UID,
    facts,
    job,
    request_failure,
    status_after,
)

SEEN = status_after(job(), BEGUN, facts(RUNNING))
MADE = status_after(job(), BEGUN)
LATE = GIVE_UP_SECONDS + 1
DENIED = request_failure(FailureKind.ACCESS, T0, refused_seconds=LATE)
DENIED_ONCE = request_failure(FailureKind.ACCESS, T0 + LATE)
TAKEN = Problem("TrainingJobExists", "it belongs to another job")

CASES: list[tuple[str, Status, TrainingFacts, float, DeletionStep]] = [
    ("nothing was asked for", Status(), facts(), 0, RemoveFinalizer()),
    ("it runs, and a user removed the status", Status(), facts(RUNNING), 0, Stop()),
    (
        "a user removed the status, and muster may not read it",
        Status(),
        facts(observation_failure=DENIED),
        LATE,
        RemoveFinalizer(DENIED),
    ),
    ("it runs", SEEN, facts(RUNNING), 0, Stop()),
    ("it is being stopped", SEEN, facts(STOPPING), 1, Wait(None)),
    ("it has stopped", SEEN, facts(STOPPED), 1, RemoveFinalizer()),
    ("it was done", SEEN, facts(DONE), 1, RemoveFinalizer()),
    ("another one may run", SEEN, facts(DONE, search_failure=DENIED), LATE, RemoveFinalizer(DENIED)),
    ("it may yet come", MADE, facts(), 1, Wait(T0 + CREATION_SECONDS)),
    ("it did not come", MADE, facts(), CREATION_SECONDS, RemoveFinalizer()),
    (
        "an operator before may have sent it late",
        MADE,
        facts(operator_started_at=T0 + 40),
        41,
        Wait(T0 + 40 + CREATION_SECONDS),
    ),
    ("SageMaker said no", MADE, facts(request_failure=request_failure(FailureKind.CAPACITY)), 1, RemoveFinalizer()),
    ("it belongs to another job", MADE, facts(name_conflict=TAKEN), 1, RemoveFinalizer()),
    ("muster may not read it", SEEN, facts(observation_failure=DENIED), LATE, RemoveFinalizer(DENIED)),
    ("muster may not stop it", SEEN, facts(RUNNING, request_failure=DENIED), LATE, RemoveFinalizer(DENIED)),
    ("muster may stop it by now", SEEN, facts(RUNNING, request_failure=DENIED), 60, Stop()),
    ("its stop is not observed", SEEN, facts(STOPPING, refresh_failure=DENIED), LATE, RemoveFinalizer(DENIED)),
    (
        "one refusal is no row",
        SEEN,
        facts(observation_failure=DENIED_ONCE),
        LATE,
        Wait(compute_retry_time(UID, DENIED_ONCE)),
    ),
    (
        "it has ended, although muster may not read it",
        SEEN,
        facts(STOPPED, refresh_failure=DENIED),
        LATE,
        RemoveFinalizer(),
    ),
    ("there is none, although muster may not read it", MADE, facts(request_failure=DENIED), LATE, RemoveFinalizer()),
]


@pytest.mark.parametrize(
    ("previous", "known", "seconds", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_done(previous: Status, known: TrainingFacts, seconds: float, wanted: DeletionStep) -> None:
    assert decide_deletion(UID, previous, known, T0, T0 + seconds) == wanted


def test_refusals_from_before_the_deletion_let_nothing_go() -> None:
    current = facts(observation_failure=request_failure(FailureKind.ACCESS, T0, refused_seconds=100_000))
    assert isinstance(decide_deletion(UID, SEEN, current, T0, T0 + GIVE_UP_SECONDS - 1), Wait)
    assert decide_deletion(UID, SEEN, current, T0, T0 + GIVE_UP_SECONDS) == RemoveFinalizer(current.observation_failure)


@pytest.mark.parametrize(
    "known",
    [
        facts(observation_failure=DENIED),
        facts(RUNNING, request_failure=DENIED),
        facts(STOPPING, refresh_failure=DENIED),
        facts(STOPPED, search_failure=DENIED),
    ],
)
def test_who_waits_for_a_right_waits_no_longer_than_that(known: TrainingFacts) -> None:
    result = decide_deletion(UID, SEEN, known, T0, T0 + 1)
    assert isinstance(result, Wait)
    assert result.until is not None
    assert result.until <= T0 + GIVE_UP_SECONDS


def test_what_passes_by_itself_is_waited_for() -> None:
    away = facts(observation_failure=request_failure(FailureKind.SERVICE, T0 + 100_000))
    assert isinstance(decide_deletion(UID, SEEN, away, T0, T0 + 100_000), Wait)
