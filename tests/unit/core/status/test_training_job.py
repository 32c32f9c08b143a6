"""The status of a job on SageMaker: each SageMaker status has a phase, and unknown values are absent."""

from __future__ import annotations

import botocore.session
import pytest
from botocore.model import StringShape

from muster.api.spec.sagemaker.distribution import Distribution, Switch
from muster.api.spec.sagemaker.resources import InstanceGroup
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.status.status import Condition, NodeCounts, Status
from muster.core.facts import AgentFacts
from muster.core.hangs import STALL_SECONDS
from muster.core.status.training_job.record import build_console_url
from muster.core.training_job.ends import classify_training_failure
from muster.core.training_job.facts import FailureKind, TrainingFacts, TrainingJob
from muster_worker.contract.schema import AgentPhase, Report
from unit.core.builders import rank
from unit.core.training_job.training_world import (
    BEGUN,
    CRASHED,
    DONE,
    NO_ROOM,
    RUNNING,
    STOPPED,
    STOPPING,
    T0,
    UID,
    facts,
    job,
    request_failure,
    status_after,
    training,
    turn,
)

SEEN = status_after(job(), BEGUN, facts(RUNNING))
CASES = [
    (training("Starting"), "Starting", "Starting: Starting it is"),
    (training("Starting", "Pending"), "Queued", "Pending: Pending it is"),
    (training("Starting", "Downloading"), "Starting", "Downloading: Downloading it is"),
    (training("Starting", "Training"), "Running", "Training: Training it is"),
    (training("Starting", "Training", "Uploading"), "Running", "Uploading: Uploading it is"),
    (training("Starting", "Training", "Interrupted"), "Restarting", "Interrupted: Interrupted it is"),
    (training("Starting", "Training", "Restarting"), "Restarting", "Restarting: Restarting it is"),
    (training("Starting", "Dreaming"), "Starting", "Dreaming: Dreaming it is"),
    (STOPPING, "Stopping", "Stopping: Stopping it is"),
    (DONE, "Succeeded", "All 2 ranks succeeded"),
    (CRASHED, "Failed", "Training job vit-1 failed: AlgorithmError: ExitCode 1"),
    (STOPPED, "Failed", "Training job vit-1 was stopped: something other than muster stopped it"),
]


@pytest.mark.parametrize(
    ("found", "phase", "message"), CASES, ids=[case[1] + str(index) for index, case in enumerate(CASES)]
)
def test_each_word_has_its_phase(found: TrainingJob, phase: str, message: str) -> None:
    status = status_after(job(), BEGUN, facts(found))
    assert (status.phase, status.message) == (phase, message)


def test_no_word_of_the_service_model_is_too_much() -> None:
    model = botocore.session.get_session().get_service_model("sagemaker")
    statuses, secondaries = (model.shape_for(name) for name in ("TrainingJobStatus", "SecondaryStatus"))
    assert isinstance(statuses, StringShape)
    assert isinstance(secondaries, StringShape)
    for status in statuses.enum:
        for secondary in secondaries.enum:
            ends = "" if status == "InProgress" else status
            result = training("Starting", secondary, ends=ends)
            assert status_after(job(), BEGUN, facts(result)).phase


def test_a_failure_before_another_attempt_is_reported() -> None:
    status = turn(job(restarts=2), SEEN, facts(CRASHED, has_finalizer=False), T0 + 60)[2]
    assert (status.phase, status.message) == (
        "Restarting",
        "AlgorithmError: ExitCode 1; restart 1: another training job follows",
    )


def test_want_of_capacity_is_a_condition_that_passes() -> None:
    status = turn(job(), status_after(job(), BEGUN), facts(NO_ROOM), T0)[2]
    assert status.phase == "Pending"
    assert _condition(status, "Scheduled") == ("False", "InsufficientCapacity")
    assert _condition(status, "Stalled") == ("False", "Waiting")
    assert status.message.startswith("CapacityError: Unable to provision requested ML compute capacity; muster asks")


@pytest.mark.parametrize(
    "known",
    [
        facts(request_failure=request_failure(FailureKind.ACCESS)),
        facts(RUNNING, refresh_failure=request_failure(FailureKind.ACCESS)),
    ],
)
def test_a_missing_right_is_for_people(known: TrainingFacts) -> None:
    status = turn(job(), SEEN if known.training else status_after(job(), BEGUN), known, T0 + 5)[2]
    assert _condition(status, "Stalled") == ("True", "NoAccess")
    assert status.message == "it was not to be"


def test_one_request_that_went_wrong_is_not_worth_a_word() -> None:
    for tries, stalled in ((1, "False"), (2, "False"), (3, "True")):
        current = facts(request_failure=request_failure(FailureKind.SERVICE, tries=tries))
        assert _condition(turn(job(), status_after(job(), BEGUN), current, T0 + 5)[2], "Stalled")[0] == stalled


def test_who_can_not_look_takes_nothing_back() -> None:
    observation_failure = facts(observation_failure=request_failure(FailureKind.ACCESS))
    status = turn(job(), SEEN, observation_failure, T0 + 5)[2]
    assert (status.phase, status.ranks, status.backend) == (SEEN.phase, SEEN.ranks, SEEN.backend)
    assert _condition(status, "Stalled") == ("True", "NoAccess")
    assert turn(job(), SEEN, facts(observation_failure=request_failure(FailureKind.SERVICE)), T0 + 5)[2] == SEEN


def test_ranks_that_say_nothing_are_unknown_while_it_trains_and_done_with_it() -> None:
    assert SEEN.ranks is not None
    assert [(one.state, one.ranks) for one in SEEN.ranks.by_state] == [("Unknown", "0-1")]
    done, crashed = status_after(job(), BEGUN, facts(DONE)).ranks, status_after(job(), BEGUN, facts(CRASHED)).ranks
    assert done is not None
    assert crashed is not None
    assert [one.state for one in done.by_state] == ["Succeeded"]
    assert [one.state for one in crashed.by_state] == ["Stopped"]


def test_the_message_says_why_a_suspended_job_is_not_released() -> None:
    denied = request_failure(FailureKind.ACCESS, T0)
    seen = status_after(job(), BEGUN, facts(RUNNING))
    suspended = turn(job(suspend=True), seen, facts(STOPPED), T0 + 60)[2]
    status = turn(job(suspend=True), suspended, facts(STOPPED, search_failure=denied), T0 + 61)[2]
    (stalled,) = [one for one in status.conditions if one.type == "Stalled"]
    assert (status.phase, stalled.reason) == ("Suspended", denied.problem.reason)


def test_the_world_is_that_of_the_instance_group_that_runs_the_ranks() -> None:
    groups = (
        InstanceGroup(name="data", instance_type="ml.c5.9xlarge", instance_count=2),
        InstanceGroup(name="train", instance_type="ml.p4d.24xlarge", instance_count=2),
    )
    block = SageMaker(
        region="us-west-2",
        instance_groups=groups,
        distribution=Distribution(torch_distributed=Switch(), instance_group="train"),
    )
    asked = job()
    spec = asked.spec.model_copy(update={"nodes": 4, "procs_per_node": 8, "sagemaker": block})
    asked = asked.model_copy(update={"spec": spec})
    trains, done = status_after(asked, BEGUN, facts(RUNNING)), status_after(asked, BEGUN, facts(RUNNING), facts(DONE))
    assert trains.ranks is not None
    assert done.ranks is not None
    assert (trains.ranks.world, trains.nodes) == (16, NodeCounts(desired=4, ready=4))
    assert (done.phase, done.message, done.ranks.ready) == ("Succeeded", "All 16 ranks succeeded", "0/16")


@pytest.mark.parametrize(
    ("reason", "kind", "sequel"),
    [
        ("CapacityError: Unable to provision requested ML compute capacity.", "InsufficientCapacity", "Retry"),
        ("InternalServerError: We encountered an internal error.", "InternalServerError", "Restart"),
        ("AlgorithmError: ExecuteUserScriptError:\nExitCode 1", "AlgorithmError", "Restart"),
        ("ClientError: Data download failed", "ClientError", "None"),
        ("Something else went wrong", "TrainingJobFailed", "Restart"),
        (None, "TrainingJobFailed", "Restart"),
    ],
)
def test_why_it_failed_says_whether_another_one_may_help(reason: str | None, kind: str, sequel: str) -> None:
    end = classify_training_failure(training("Starting", ends="Failed", reason=reason))
    assert (end.reason, end.sequel.value) == (kind, sequel)


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-west-2", "us-west-2.console.aws.amazon.com"),
        ("cn-north-1", "console.amazonaws.cn"),
        ("us-gov-west-1", "us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_the_console_is_that_of_its_partition(region: str, host: str) -> None:
    assert build_console_url(region, "vit-1") == f"https://{host}/sagemaker/home?region={region}#/jobs/vit-1"


def _condition(status: Status, kind: str) -> tuple[str, str]:
    result: Condition = next(one for one in status.conditions if one.type == kind)
    return result.status, result.reason


@pytest.mark.parametrize(("idle", "status"), [(STALL_SECONDS - 1, "False"), (STALL_SECONDS, "True")])
def test_ranks_that_complete_no_step_any_more_stall_the_job(idle: float, status: str) -> None:
    stepped = rank(0, step=5, highest_step_at=T0 + 30, last_step_at=T0 + 30)
    report = Report(UID, 0, 0, 1, 0, AgentPhase.RUNNING, ranks=(stepped.report,))
    agent = AgentFacts(report, T0 + 30 + idle, (stepped,))
    seen = status_after(job(), BEGUN, facts(RUNNING, agents=(agent,)), now=T0 + 30 + idle)
    stalled = seen.find_condition("Stalled")
    assert stalled is not None
    assert (stalled.status, seen.phase) == (status, "Running")
    assert (seen.hang is not None) == (status == "True")
