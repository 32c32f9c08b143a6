"""The actions for a deleted resource whose training job may run."""

import pytest

from muster.api.status.status import Status
from muster.core.problem import Problem
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
from support.rows import check_rows
from unit.core.training_job.training_world import (
    COMPLETED_JOB,
    NO_TRAINING_JOB,
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

RUNNING_STATUS = status_after(job(), NO_TRAINING_JOB, facts(RUNNING))
CREATED = status_after(job(), NO_TRAINING_JOB)
AFTER_LIMIT = GIVE_UP_SECONDS + 1
DENIED = request_failure(FailureKind.ACCESS, T0, refused_seconds=AFTER_LIMIT)
DENIED_ONCE = request_failure(FailureKind.ACCESS, T0 + AFTER_LIMIT)
NAME_CONFLICT = Problem("TrainingJobExists", "it belongs to another job")

CASES: list[tuple[str, Status, TrainingFacts, float, DeletionStep]] = [
    ("no training job was created", Status(), facts(), 0, RemoveFinalizer()),
    ("it runs, and a user removed the status", Status(), facts(RUNNING), 0, Stop()),
    (
        "a user removed the status, and muster may not read it",
        Status(),
        facts(observation_failure=DENIED),
        AFTER_LIMIT,
        RemoveFinalizer(DENIED),
    ),
    ("it runs", RUNNING_STATUS, facts(RUNNING), 0, Stop()),
    ("it is being stopped", RUNNING_STATUS, facts(STOPPING), 1, Wait(None)),
    ("it has stopped", RUNNING_STATUS, facts(STOPPED), 1, RemoveFinalizer()),
    ("it has completed", RUNNING_STATUS, facts(COMPLETED_JOB), 1, RemoveFinalizer()),
    (
        "another training job may run",
        RUNNING_STATUS,
        facts(COMPLETED_JOB, search_failure=DENIED),
        AFTER_LIMIT,
        RemoveFinalizer(DENIED),
    ),
    ("it may still be created", CREATED, facts(), 1, Wait(T0 + CREATION_SECONDS)),
    ("it was not created in time", CREATED, facts(), CREATION_SECONDS, RemoveFinalizer()),
    (
        "an earlier operator may have sent the request late",
        CREATED,
        facts(operator_started_at=T0 + 40),
        41,
        Wait(T0 + 40 + CREATION_SECONDS),
    ),
    (
        "SageMaker refused to create it",
        CREATED,
        facts(request_failure=request_failure(FailureKind.CAPACITY)),
        1,
        RemoveFinalizer(),
    ),
    ("it belongs to another job", CREATED, facts(name_conflict=NAME_CONFLICT), 1, RemoveFinalizer()),
    ("muster may not read it", RUNNING_STATUS, facts(observation_failure=DENIED), AFTER_LIMIT, RemoveFinalizer(DENIED)),
    (
        "muster may not stop it",
        RUNNING_STATUS,
        facts(RUNNING, request_failure=DENIED),
        AFTER_LIMIT,
        RemoveFinalizer(DENIED),
    ),
    ("muster may stop it now", RUNNING_STATUS, facts(RUNNING, request_failure=DENIED), 60, Stop()),
    (
        "muster can't observe whether it has stopped",
        RUNNING_STATUS,
        facts(STOPPING, refresh_failure=DENIED),
        AFTER_LIMIT,
        RemoveFinalizer(DENIED),
    ),
    (
        "only one request was denied",
        RUNNING_STATUS,
        facts(observation_failure=DENIED_ONCE),
        AFTER_LIMIT,
        Wait(compute_retry_time(UID, DENIED_ONCE)),
    ),
    (
        "it has ended, although muster may not read it",
        RUNNING_STATUS,
        facts(STOPPED, refresh_failure=DENIED),
        AFTER_LIMIT,
        RemoveFinalizer(),
    ),
    (
        "it does not exist, although muster may not read it",
        CREATED,
        facts(request_failure=DENIED),
        AFTER_LIMIT,
        RemoveFinalizer(),
    ),
]


def test_next_step_of_a_deletion() -> None:
    def check(previous: Status, training_facts: TrainingFacts, seconds: float, step: DeletionStep) -> None:
        assert decide_deletion(UID, previous, training_facts, T0, T0 + seconds) == step

    check_rows([case[1:] for case in CASES], lambda row: check(*row))


def test_the_finalizer_stays_for_the_limit_after_the_deletion() -> None:
    current = facts(observation_failure=request_failure(FailureKind.ACCESS, T0, refused_seconds=100_000))
    assert isinstance(decide_deletion(UID, RUNNING_STATUS, current, T0, T0 + GIVE_UP_SECONDS - 1), Wait)
    assert decide_deletion(UID, RUNNING_STATUS, current, T0, T0 + GIVE_UP_SECONDS) == RemoveFinalizer(
        current.observation_failure
    )


@pytest.mark.parametrize(
    "training_facts",
    [
        facts(observation_failure=DENIED),
        facts(RUNNING, request_failure=DENIED),
        facts(STOPPING, refresh_failure=DENIED),
        facts(STOPPED, search_failure=DENIED),
    ],
)
def test_the_wait_for_a_permission_has_a_limit(training_facts: TrainingFacts) -> None:
    result = decide_deletion(UID, RUNNING_STATUS, training_facts, T0, T0 + 1)
    assert isinstance(result, Wait)
    assert result.until is not None
    assert result.until <= T0 + GIVE_UP_SECONDS


def test_temporary_failures_have_no_limit() -> None:
    unavailable = facts(observation_failure=request_failure(FailureKind.SERVICE, T0 + 100_000))
    assert isinstance(decide_deletion(UID, RUNNING_STATUS, unavailable, T0, T0 + 100_000), Wait)
