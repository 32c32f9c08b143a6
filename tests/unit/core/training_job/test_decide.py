"""The decisions about a training job. Each case has a status, the facts and the actions."""

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import DeleteResource
from muster.core.problem import Problem
from muster.core.training_job.attempt_state import CREATION_SECONDS
from muster.core.training_job.decide import (
    AddFinalizer,
    CreateTrainingJob,
    DeleteTrainingJob,
    RemoveTrainingFinalizer,
    StopTrainingJob,
    TrainingAction,
)
from muster.core.training_job.facts import FailureKind, Location, TrainingFacts, TrainingJob
from support.rows import check_rows
from unit.core.training_job.training_world import (
    CAPACITY,
    COMPLETED_JOB,
    CRASHED,
    NO_CAPACITY,
    NO_TRAINING_JOB,
    RUNNING,
    STARTING,
    STOPPED,
    STOPPING,
    T0,
    facts,
    find_requeue_time,
    job,
    make_training_job,
    reconcile_once,
    request_failure,
    status_after,
)

NO_STATUS = Status()
CREATED = status_after(job(), NO_TRAINING_JOB)
RUNNING_STATUS = status_after(job(), NO_TRAINING_JOB, facts(RUNNING))
SUSPENDING = reconcile_once(job(suspend=True), RUNNING_STATUS, facts(RUNNING), T0 + 5)[2]
SUSPENDED = reconcile_once(job(suspend=True), SUSPENDING, facts(STOPPED), T0 + 60)[2]
COMPLETED = status_after(job(), NO_TRAINING_JOB, facts(COMPLETED_JOB))
CLIENT_ERROR = make_training_job("Starting", "Training", final_status="Failed", reason="ClientError: no such bucket")
NOT_ALLOWED, NAME_CONFLICT = Problem("Invalid", "that role is not yours"), Problem("TrainingJobExists", "it is theirs")
FAILED_AND_REFUSED = facts(request_failure=request_failure(FailureKind.SERVICE), refusal=NOT_ALLOWED)
CREATE, STOP = CreateTrainingJob(1), StopTrainingJob(1, Location("us-west-2"))
ADD_FINALIZER, REMOVE_FINALIZER = AddFinalizer(), RemoveTrainingFinalizer()
OTHER_LOCATION = Location("eu-west-1", "arn:aws:iam::444455556666:role/muster")

CASES: list[tuple[str, Job, Status, TrainingFacts, float, tuple[TrainingAction, ...]]] = [
    # the creation
    ("the finalizer is added first", job(), NO_STATUS, facts(has_finalizer=False), 0, (ADD_FINALIZER,)),
    ("then the training job is created", job(), NO_STATUS, NO_TRAINING_JOB, 0, (CREATE,)),
    ("a suspended job has no training job", job(suspend=True), NO_STATUS, facts(has_finalizer=False), 0, ()),
    ("the status has its creation, but no request was sent", job(), CREATED, NO_TRAINING_JOB, 60, (CREATE,)),
    (
        "it is unknown whether the training job exists",
        job(),
        CREATED,
        facts(observation_failure=request_failure(FailureKind.SERVICE)),
        1,
        (),
    ),
    ("the training job exists", job(), CREATED, facts(STARTING), 1, ()),
    ("the training job runs", job(), RUNNING_STATUS, facts(RUNNING), 30, ()),
    # causes that prevent the creation
    (
        "an account limit is reached",
        job(),
        CREATED,
        facts(request_failure=request_failure(FailureKind.CAPACITY, T0)),
        5,
        (),
    ),
    (
        "an account limit was reached, and the backoff has passed",
        job(),
        CREATED,
        facts(request_failure=request_failure(FailureKind.CAPACITY, T0)),
        60,
        (CREATE,),
    ),
    ("a permission is missing", job(), CREATED, facts(request_failure=request_failure(FailureKind.ACCESS, T0)), 2, ()),
    (
        "a permission was missing, and the backoff has passed",
        job(),
        CREATED,
        facts(request_failure=request_failure(FailureKind.ACCESS, T0)),
        20,
        (CREATE,),
    ),
    (
        "the operator's configuration refuses the training job",
        job(),
        NO_STATUS,
        facts(has_finalizer=False, refusal=NOT_ALLOWED),
        0,
        (),
    ),
    (
        "the operator's configuration refuses the restart",
        job(restarts=1),
        RUNNING_STATUS,
        facts(CRASHED, refusal=NOT_ALLOWED),
        40,
        (),
    ),
    ("the name belongs to another job", job(), CREATED, facts(name_conflict=NAME_CONFLICT), 600, ()),
    # the end
    ("it completed", job(), RUNNING_STATUS, facts(COMPLETED_JOB), 40, (REMOVE_FINALIZER,)),
    ("a user stops it, and it is stopping", job(), RUNNING_STATUS, facts(STOPPING), 40, ()),
    ("a user stopped it", job(restarts=3), RUNNING_STATUS, facts(STOPPED), 40, (REMOVE_FINALIZER,)),
    ("it failed", job(), RUNNING_STATUS, facts(CRASHED), 40, (REMOVE_FINALIZER,)),
    (
        "it failed, and the last lines of its ranks are missing",
        job(),
        RUNNING_STATUS,
        facts(CRASHED, has_all_reports=False),
        40,
        (),
    ),
    ("it failed, and may be restarted", job(restarts=1), RUNNING_STATUS, facts(CRASHED), 40, (CreateTrainingJob(2),)),
    (
        "it failed because of a client error, which a restart would repeat",
        job(restarts=1),
        RUNNING_STATUS,
        facts(CLIENT_ERROR),
        40,
        (REMOVE_FINALIZER,),
    ),
    ("it failed because of missing capacity", job(), CREATED, facts(NO_CAPACITY), 40, ()),
    ("SageMaker no longer lists it", job(), RUNNING_STATUS, facts(), 60, (REMOVE_FINALIZER,)),
    # the requests of the user
    ("the job is suspended", job(suspend=True), RUNNING_STATUS, facts(RUNNING), 40, (STOP,)),
    ("the job is suspended, and the training job is stopping", job(suspend=True), SUSPENDING, facts(STOPPING), 40, ()),
    (
        "the job is suspended, and the training job has stopped",
        job(suspend=True),
        SUSPENDING,
        facts(STOPPED),
        60,
        (REMOVE_FINALIZER,),
    ),
    ("the job stays suspended", job(suspend=True), SUSPENDED, facts(has_finalizer=False), 90, ()),
    ("the job is resumed before the training job has stopped", job(), SUSPENDING, facts(STOPPING), 60, ()),
    (
        "the job is resumed before all reports have arrived",
        job(),
        SUSPENDING,
        facts(STOPPED, has_all_reports=False),
        60,
        (),
    ),
    (
        "the training job completes while the job is suspended",
        job(suspend=True),
        SUSPENDING,
        facts(COMPLETED_JOB),
        60,
        (REMOVE_FINALIZER,),
    ),
    ("the deadline has passed", job(deadline=60), RUNNING_STATUS, facts(RUNNING), 61, (STOP,)),
    ("the deadline has not passed", job(deadline=60), RUNNING_STATUS, facts(RUNNING), 59, ()),
    ("the job is suspended while the training job is created", job(suspend=True), CREATED, NO_TRAINING_JOB, 5, ()),
    (
        "the job is suspended, and the training job was not created in time",
        job(suspend=True),
        CREATED,
        NO_TRAINING_JOB,
        CREATION_SECONDS + 5,
        (REMOVE_FINALIZER,),
    ),
    (
        "the job is suspended, and the training job may still be created although the role is not allowed now",
        job(suspend=True),
        CREATED,
        FAILED_AND_REFUSED,
        5,
        (),
    ),
    (
        "the job is suspended, and the training job can't be created",
        job(suspend=True),
        CREATED,
        facts(name_conflict=NAME_CONFLICT),
        5,
        (REMOVE_FINALIZER,),
    ),
    (
        "the job is suspended, and SageMaker has refused the training job",
        job(suspend=True),
        CREATED,
        facts(request_failure=request_failure(FailureKind.REFUSED)),
        5,
        (REMOVE_FINALIZER,),
    ),
    # after the end
    ("the job has ended without a finalizer", job(), COMPLETED, facts(has_finalizer=False), 100, ()),
    ("the job has ended, and the finalizer is removed", job(), COMPLETED, facts(), 100, (REMOVE_FINALIZER,)),
    (
        "the job has ended, and another training job may run",
        job(),
        COMPLETED,
        facts(search_failure=request_failure(FailureKind.SERVICE, T0 + 99)),
        100,
        (),
    ),
    (
        "the job has ended, and the failed search is too old",
        job(),
        COMPLETED,
        facts(search_failure=request_failure(FailureKind.SERVICE, T0)),
        100,
        (REMOVE_FINALIZER,),
    ),
    ("another client wrote the end of a running training job", job(), COMPLETED, facts(RUNNING), 100, (STOP,)),
    ("another client wrote the end, and the training job is stopping", job(), COMPLETED, facts(STOPPING), 100, ()),
    (
        "the training job runs in another region",
        job(suspend=True),
        RUNNING_STATUS,
        facts(RUNNING, observed_location=OTHER_LOCATION),
        40,
        (StopTrainingJob(1, OTHER_LOCATION),),
    ),
    (
        "the TTL has not passed",
        job(ttl_seconds=60),
        COMPLETED,
        facts(has_finalizer=False, remaining_names=("vit-1",)),
        50,
        (),
    ),
    (
        "the TTL has passed, and the training job is deleted",
        job(ttl_seconds=60),
        COMPLETED,
        facts(has_finalizer=False, remaining_names=("vit-1",)),
        62,
        (DeleteTrainingJob("vit-1"),),
    ),
    (
        "the TTL has passed, and the resource is deleted",
        job(ttl_seconds=60),
        COMPLETED,
        facts(has_finalizer=False),
        62,
        (DeleteResource(),),
    ),
]


def test_next_actions() -> None:
    def check(
        a_job: Job,
        previous: Status,
        training_facts: TrainingFacts,
        seconds: float,
        expected: tuple[TrainingAction, ...],
    ) -> None:
        assert reconcile_once(a_job, previous, training_facts, T0 + seconds)[1] == expected

    check_rows([case[1:] for case in CASES], lambda row: check(*row))


def test_a_resumed_job_has_another_training_job() -> None:
    assert (SUSPENDING.phase, SUSPENDED.phase) == ("Stopping", "Suspended")
    _, actions, status = reconcile_once(job(), SUSPENDED, facts(), T0 + 100)
    assert actions == (CreateTrainingJob(2),)
    assert status.attempt == 2
    assert status.backend is not None
    assert status.backend.sagemaker is not None
    assert [entry.attempt for entry in status.backend.sagemaker.earlier] == [1]


def test_the_backoff_for_missing_capacity_increases() -> None:
    a_job, status, now = job(), CREATED, T0
    waits = []
    for attempt in range(1, 6):
        failed = facts(make_training_job("Starting", attempt=attempt, final_status="Failed", reason=CAPACITY))
        status = reconcile_once(a_job, status, failed, now)[2]
        assert reconcile_once(a_job, status, failed, now + 1)[2] == status
        retry_at = find_requeue_time(a_job, status, failed, now)
        assert retry_at is not None
        waits.append(retry_at - now)
        now = retry_at + 1
        _, actions, status = reconcile_once(a_job, status, failed, now)
        assert actions == (CreateTrainingJob(attempt + 1),)
    assert waits == sorted(waits)
    assert waits[-1] > 8 * waits[0]
    status = reconcile_once(a_job, status, facts(make_training_job("Starting", "Training", attempt=6)), now)[2]
    assert status.backend is not None
    assert status.backend.sagemaker is not None
    assert status.backend.sagemaker.retry is None


def test_a_job_restarts_at_most_max_restarts_times() -> None:
    a_job, status, now = job(restarts=2), CREATED, T0
    created_count = 1
    for _ in range(5):
        crashed = facts(
            make_training_job(
                "Starting", "Training", attempt=created_count, final_status="Failed", reason="AlgorithmError: again"
            )
        )
        now += 100
        _, actions, status = reconcile_once(a_job, status, crashed, now)
        created_count += CreateTrainingJob(created_count + 1) in actions
    assert created_count == 3
    assert status.phase == "Failed"


@pytest.mark.parametrize("training_job", [STOPPED, COMPLETED_JOB])
def test_a_suspension_completes_after_all_reports_have_arrived(training_job: TrainingJob) -> None:
    status = reconcile_once(job(), SUSPENDING, facts(training_job, has_all_reports=False), T0 + 60)[2]
    assert status.phase == "Stopping"
    after = reconcile_once(job(), status, facts(training_job), T0 + 70)[2]
    assert after.phase == ("Suspended" if training_job is STOPPED else "Succeeded")


def test_an_end_in_the_status_is_final() -> None:
    assert reconcile_once(job(), COMPLETED, facts(CRASHED), T0 + 100)[2].phase == "Succeeded"


def test_a_repeated_decision_has_no_further_actions() -> None:
    for a_job, previous, training_facts in (
        (job(), CREATED, facts(STARTING)),
        (job(suspend=True), SUSPENDING, facts(STOPPING)),
        (job(), COMPLETED, facts(has_finalizer=False)),
    ):
        assert reconcile_once(a_job, previous, training_facts, T0 + 10)[1] == ()
