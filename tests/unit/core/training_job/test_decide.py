"""The decisions about a training job: each case is a status, the facts, and the actions."""

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import DeleteResource
from muster.core.facts import Problem
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
from unit.core.training_job.training_world import (
    BEGUN,
    CAPACITY,
    CRASHED,
    DONE,
    NO_ROOM,
    RUNNING,
    STARTING,
    STOPPED,
    STOPPING,
    T0,
    facts,
    job,
    request_failure,
    status_after,
    training,
    turn,
    wake,
)

FRESH = Status()
MADE = status_after(job(), BEGUN)
SEEN = status_after(job(), BEGUN, facts(RUNNING))
SUSPENDING = turn(job(suspend=True), SEEN, facts(RUNNING), T0 + 5)[2]
SUSPENDED = turn(job(suspend=True), SUSPENDING, facts(STOPPED), T0 + 60)[2]
OVER = status_after(job(), BEGUN, facts(DONE))
WRONG = training("Starting", "Training", ends="Failed", reason="ClientError: no such bucket")
NOT_ALLOWED, TAKEN = Problem("Invalid", "that role is not yours"), Problem("TrainingJobExists", "it is theirs")
ON_ITS_WAY = facts(request_failure=request_failure(FailureKind.SERVICE), refusal=NOT_ALLOWED)
CREATE, STOP = CreateTrainingJob(1), StopTrainingJob(1, Location("us-west-2"))
HOLD, RELEASE = AddFinalizer(), RemoveTrainingFinalizer()
THERE = Location("eu-west-1", "arn:aws:iam::444455556666:role/muster")

CASES: list[tuple[str, Job, Status, TrainingFacts, float, tuple[TrainingAction, ...]]] = [
    # its start
    ("its resource is held first", job(), FRESH, facts(has_finalizer=False), 0, (HOLD,)),
    ("then it is made", job(), FRESH, BEGUN, 0, (CREATE,)),
    ("a suspended job has none", job(suspend=True), FRESH, facts(has_finalizer=False), 0, ()),
    ("it was to be created, and no request was sent", job(), MADE, BEGUN, 60, (CREATE,)),
    (
        "it is unknown whether it exists",
        job(),
        MADE,
        facts(observation_failure=request_failure(FailureKind.SERVICE)),
        1,
        (),
    ),
    ("it is there", job(), MADE, facts(STARTING), 1, ()),
    ("it trains", job(), SEEN, facts(RUNNING), 30, ()),
    # causes that prevent its creation
    ("a limit is reached", job(), MADE, facts(request_failure=request_failure(FailureKind.CAPACITY, T0)), 5, ()),
    ("for a while", job(), MADE, facts(request_failure=request_failure(FailureKind.CAPACITY, T0)), 60, (CREATE,)),
    ("a right is missing", job(), MADE, facts(request_failure=request_failure(FailureKind.ACCESS, T0)), 2, ()),
    (
        "and may have been given",
        job(),
        MADE,
        facts(request_failure=request_failure(FailureKind.ACCESS, T0)),
        20,
        (CREATE,),
    ),
    ("its namespace may not have it", job(), FRESH, facts(has_finalizer=False, refusal=NOT_ALLOWED), 0, ()),
    ("nor the next one", job(restarts=1), SEEN, facts(CRASHED, refusal=NOT_ALLOWED), 40, ()),
    ("its name belongs to another job", job(), MADE, facts(name_conflict=TAKEN), 600, ()),
    # its end
    ("it has ended well", job(), SEEN, facts(DONE), 40, (RELEASE,)),
    ("a user stops it", job(), SEEN, facts(STOPPING), 40, ()),
    ("a user stopped it", job(restarts=3), SEEN, facts(STOPPED), 40, (RELEASE,)),
    ("it failed", job(), SEEN, facts(CRASHED), 40, (RELEASE,)),
    ("its ranks' last words are missing", job(), SEEN, facts(CRASHED, has_all_reports=False), 40, ()),
    ("it failed, and may be restarted", job(restarts=1), SEEN, facts(CRASHED), 40, (CreateTrainingJob(2),)),
    ("it wants what isn't there", job(restarts=1), SEEN, facts(WRONG), 40, (RELEASE,)),
    ("there was no room", job(), MADE, facts(NO_ROOM), 40, ()),
    ("its record is missing", job(), SEEN, facts(), 60, (RELEASE,)),
    # its owner's requests
    ("it is suspended", job(suspend=True), SEEN, facts(RUNNING), 40, (STOP,)),
    ("it is being stopped", job(suspend=True), SUSPENDING, facts(STOPPING), 40, ()),
    ("it has stopped", job(suspend=True), SUSPENDING, facts(STOPPED), 60, (RELEASE,)),
    ("it stays so", job(suspend=True), SUSPENDED, facts(has_finalizer=False), 90, ()),
    ("it is resumed too early", job(), SUSPENDING, facts(STOPPING), 60, ()),
    ("unheard, it is resumed too early", job(), SUSPENDING, facts(STOPPED, has_all_reports=False), 60, ()),
    ("it was done a moment too early", job(suspend=True), SUSPENDING, facts(DONE), 60, (RELEASE,)),
    ("its time is up", job(deadline=60), SEEN, facts(RUNNING), 61, (STOP,)),
    ("its time isn't up", job(deadline=60), SEEN, facts(RUNNING), 59, ()),
    ("suspended while it is on its way", job(suspend=True), MADE, BEGUN, 5, ()),
    ("and it did not come", job(suspend=True), MADE, BEGUN, CREATION_SECONDS + 5, (RELEASE,)),
    ("and may still come, although the role is not allowed now", job(suspend=True), MADE, ON_ITS_WAY, 5, ()),
    ("none can come", job(suspend=True), MADE, facts(name_conflict=TAKEN), 5, (RELEASE,)),
    (
        "SageMaker said no",
        job(suspend=True),
        MADE,
        facts(request_failure=request_failure(FailureKind.REFUSED)),
        5,
        (RELEASE,),
    ),
    # after its end
    ("nothing is left to do", job(), OVER, facts(has_finalizer=False), 100, ()),
    ("it is let go", job(), OVER, facts(), 100, (RELEASE,)),
    ("another one may run", job(), OVER, facts(search_failure=request_failure(FailureKind.SERVICE, T0 + 99)), 100, ()),
    (
        "no report says so since",
        job(),
        OVER,
        facts(search_failure=request_failure(FailureKind.SERVICE, T0)),
        100,
        (RELEASE,),
    ),
    ("another client wrote its end", job(), OVER, facts(RUNNING), 100, (STOP,)),
    ("stopping is no end for that", job(), OVER, facts(STOPPING), 100, ()),
    (
        "it runs elsewhere",
        job(suspend=True),
        SEEN,
        facts(RUNNING, observed_location=THERE),
        40,
        (StopTrainingJob(1, THERE),),
    ),
    ("it is kept", job(after=60), OVER, facts(has_finalizer=False, remaining_names=("vit-1",)), 50, ()),
    (
        "long enough",
        job(after=60),
        OVER,
        facts(has_finalizer=False, remaining_names=("vit-1",)),
        62,
        (DeleteTrainingJob("vit-1"),),
    ),
    ("it is forgotten", job(after=60), OVER, facts(has_finalizer=False), 62, (DeleteResource(),)),
]


@pytest.mark.parametrize(
    ("asked", "previous", "known", "seconds", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_done(
    asked: Job, previous: Status, known: TrainingFacts, seconds: float, wanted: tuple[TrainingAction, ...]
) -> None:
    assert turn(asked, previous, known, T0 + seconds)[1] == wanted


def test_a_resumed_job_has_another_training_job() -> None:
    assert (SUSPENDING.phase, SUSPENDED.phase) == ("Stopping", "Suspended")
    _, actions, status = turn(job(), SUSPENDED, facts(), T0 + 100)
    assert actions == (CreateTrainingJob(2),)
    assert status.attempt == 2
    assert status.backend is not None
    assert status.backend.sagemaker is not None
    assert [one.attempt for one in status.backend.sagemaker.earlier] == [1]


def test_want_of_capacity_is_waited_out_longer_each_time() -> None:
    asked, status, now = job(), MADE, T0
    pauses = []
    for attempt in range(1, 6):
        ended = facts(training("Starting", attempt=attempt, ends="Failed", reason=CAPACITY))
        status = turn(asked, status, ended, now)[2]
        assert turn(asked, status, ended, now + 1)[2] == status
        due = wake(asked, status, ended, now)
        assert due is not None
        pauses.append(due - now)
        now = due + 1
        _, actions, status = turn(asked, status, ended, now)
        assert actions == (CreateTrainingJob(attempt + 1),)
    assert pauses == sorted(pauses)
    assert pauses[-1] > 8 * pauses[0]
    status = turn(asked, status, facts(training("Starting", "Training", attempt=6)), now)[2]
    assert status.backend is not None
    assert status.backend.sagemaker is not None
    assert status.backend.sagemaker.retry is None


def test_restarts_are_as_many_as_allowed() -> None:
    asked, status, now = job(restarts=2), MADE, T0
    made = 1
    for _ in range(5):
        crashed = facts(training("Starting", "Training", attempt=made, ends="Failed", reason="AlgorithmError: again"))
        now += 100
        _, actions, status = turn(asked, status, crashed, now)
        made += CreateTrainingJob(made + 1) in actions
    assert made == 3
    assert status.phase == "Failed"


@pytest.mark.parametrize("found", [STOPPED, DONE])
def test_what_is_being_suspended_stays_so_until_its_ranks_are_heard_out(found: TrainingJob) -> None:
    status = turn(job(), SUSPENDING, facts(found, has_all_reports=False), T0 + 60)[2]
    assert status.phase == "Stopping"
    after = turn(job(), status, facts(found), T0 + 70)[2]
    assert after.phase == ("Suspended" if found is STOPPED else "Succeeded")


def test_an_end_is_not_taken_back() -> None:
    assert turn(job(), OVER, facts(CRASHED), T0 + 100)[2].phase == "Succeeded"


def test_deciding_again_once_it_is_done_gives_nothing_new() -> None:
    for asked, previous, known in (
        (job(), MADE, facts(STARTING)),
        (job(suspend=True), SUSPENDING, facts(STOPPING)),
        (job(), OVER, facts(has_finalizer=False)),
    ):
        assert turn(asked, previous, known, T0 + 10)[1] == ()
