"""The status of a job on SageMaker. Each status of a training job has a phase, and unknown values are absent."""

from __future__ import annotations

import botocore.session
import pytest
from botocore.model import StringShape

from muster.api.spec.sagemaker.distribution import Distribution, StrategyWithoutSettings
from muster.api.spec.sagemaker.resources import InstanceGroup
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.status.status import Condition, NodeCounts, Status
from muster.core.facts import AgentFacts
from muster.core.failure_timeouts import STALL_SECONDS
from muster.core.status.training_job.record import build_console_url
from muster.core.training_job.ends import classify_training_failure
from muster.core.training_job.facts import FailureKind, TrainingFacts, TrainingJob
from muster_worker.contract.schema import AgentPhase, Report
from unit.core.builders import rank
from unit.core.training_job.training_world import (
    COMPLETED_JOB,
    CRASHED,
    NO_CAPACITY,
    NO_TRAINING_JOB,
    RUNNING,
    STOPPED,
    STOPPING,
    T0,
    UID,
    facts,
    job,
    make_training_job,
    reconcile_once,
    request_failure,
    status_after,
)

RUNNING_STATUS = status_after(job(), NO_TRAINING_JOB, facts(RUNNING))
CASES = [
    (make_training_job("Starting"), "Starting", "Starting: Starting message"),
    (make_training_job("Starting", "Pending"), "Queued", "Pending: Pending message"),
    (make_training_job("Starting", "Downloading"), "Starting", "Downloading: Downloading message"),
    (make_training_job("Starting", "Training"), "Running", "Training: Training message"),
    (make_training_job("Starting", "Training", "Uploading"), "Running", "Uploading: Uploading message"),
    (make_training_job("Starting", "Training", "Interrupted"), "Restarting", "Interrupted: Interrupted message"),
    (make_training_job("Starting", "Training", "Restarting"), "Restarting", "Restarting: Restarting message"),
    (make_training_job("Starting", "Dreaming"), "Starting", "Dreaming: Dreaming message"),
    (STOPPING, "Stopping", "Stopping: Stopping message"),
    (COMPLETED_JOB, "Succeeded", "All 2 ranks succeeded"),
    (CRASHED, "Failed", "Training job vit-1 failed: AlgorithmError: ExitCode 1"),
    (STOPPED, "Failed", "Training job vit-1 was stopped: something other than muster stopped it"),
]


@pytest.mark.parametrize(
    ("training_job", "phase", "message"), CASES, ids=[case[1] + str(index) for index, case in enumerate(CASES)]
)
def test_each_secondary_status_has_a_phase(training_job: TrainingJob, phase: str, message: str) -> None:
    status = status_after(job(), NO_TRAINING_JOB, facts(training_job))
    assert (status.phase, status.message) == (phase, message)


def test_every_status_in_the_service_model_has_a_phase() -> None:
    model = botocore.session.get_session().get_service_model("sagemaker")
    statuses, secondary_statuses = (model.shape_for(name) for name in ("TrainingJobStatus", "SecondaryStatus"))
    assert isinstance(statuses, StringShape)
    assert isinstance(secondary_statuses, StringShape)
    for status in statuses.enum:
        for secondary in secondary_statuses.enum:
            final_status = "" if status == "InProgress" else status
            result = make_training_job("Starting", secondary, final_status=final_status)
            assert status_after(job(), NO_TRAINING_JOB, facts(result)).phase


def test_a_failure_before_another_attempt_is_reported() -> None:
    status = reconcile_once(job(restarts=2), RUNNING_STATUS, facts(CRASHED, has_finalizer=False), T0 + 60)[2]
    assert (status.phase, status.message) == (
        "Restarting",
        "AlgorithmError: ExitCode 1; restart 1: another training job follows",
    )


def test_missing_capacity_does_not_stall_the_job() -> None:
    status = reconcile_once(job(), status_after(job(), NO_TRAINING_JOB), facts(NO_CAPACITY), T0)[2]
    assert status.phase == "Pending"
    assert _condition(status, "Scheduled") == ("False", "InsufficientCapacity")
    assert _condition(status, "Stalled") == ("False", "Waiting")
    assert status.message.startswith("CapacityError: Unable to provision requested ML compute capacity; muster asks")


@pytest.mark.parametrize(
    "training_facts",
    [
        facts(request_failure=request_failure(FailureKind.ACCESS)),
        facts(RUNNING, refresh_failure=request_failure(FailureKind.ACCESS)),
    ],
)
def test_a_missing_permission_stalls_the_job(training_facts: TrainingFacts) -> None:
    status = reconcile_once(
        job(),
        RUNNING_STATUS if training_facts.training else status_after(job(), NO_TRAINING_JOB),
        training_facts,
        T0 + 5,
    )[2]
    assert _condition(status, "Stalled") == ("True", "NoAccess")
    assert status.message == "the request failed"


def test_only_the_third_failed_request_stalls_the_job() -> None:
    for tries, stalled in ((1, "False"), (2, "False"), (3, "True")):
        current = facts(request_failure=request_failure(FailureKind.SERVICE, tries=tries))
        assert (
            _condition(reconcile_once(job(), status_after(job(), NO_TRAINING_JOB), current, T0 + 5)[2], "Stalled")[0]
            == stalled
        )


def test_a_failed_observation_changes_only_the_condition_stalled() -> None:
    observation_failure = facts(observation_failure=request_failure(FailureKind.ACCESS))
    status = reconcile_once(job(), RUNNING_STATUS, observation_failure, T0 + 5)[2]
    assert (status.phase, status.ranks, status.backend) == (
        RUNNING_STATUS.phase,
        RUNNING_STATUS.ranks,
        RUNNING_STATUS.backend,
    )
    assert _condition(status, "Stalled") == ("True", "NoAccess")
    assert (
        reconcile_once(job(), RUNNING_STATUS, facts(observation_failure=request_failure(FailureKind.SERVICE)), T0 + 5)[
            2
        ]
        == RUNNING_STATUS
    )


def test_ranks_without_reports_are_unknown_while_the_training_job_runs_and_end_with_it() -> None:
    assert RUNNING_STATUS.ranks is not None
    assert [(entry.state, entry.ranks) for entry in RUNNING_STATUS.ranks.by_state] == [("Unknown", "0-1")]
    succeeded, crashed = (
        status_after(job(), NO_TRAINING_JOB, facts(COMPLETED_JOB)).ranks,
        status_after(job(), NO_TRAINING_JOB, facts(CRASHED)).ranks,
    )
    assert succeeded is not None
    assert crashed is not None
    assert [entry.state for entry in succeeded.by_state] == ["Succeeded"]
    assert [entry.state for entry in crashed.by_state] == ["Stopped"]


def test_the_condition_stalled_says_why_a_suspended_job_keeps_its_finalizer() -> None:
    denied = request_failure(FailureKind.ACCESS, T0)
    running_status = status_after(job(), NO_TRAINING_JOB, facts(RUNNING))
    suspended = reconcile_once(job(suspend=True), running_status, facts(STOPPED), T0 + 60)[2]
    status = reconcile_once(job(suspend=True), suspended, facts(STOPPED, search_failure=denied), T0 + 61)[2]
    (stalled,) = [entry for entry in status.conditions if entry.type == "Stalled"]
    assert (status.phase, stalled.reason) == ("Suspended", denied.problem.reason)


def test_the_world_size_counts_only_the_instance_group_that_runs_the_ranks() -> None:
    groups = (
        InstanceGroup(name="data", instance_type="ml.c5.9xlarge", instance_count=2),
        InstanceGroup(name="train", instance_type="ml.p4d.24xlarge", instance_count=2),
    )
    block = SageMaker(
        region="us-west-2",
        instance_groups=groups,
        distribution=Distribution(torch_distributed=StrategyWithoutSettings(), instance_group="train"),
    )
    a_job = job()
    spec = a_job.spec.model_copy(update={"nodes": 4, "procs_per_node": 8, "sagemaker": block})
    a_job = a_job.model_copy(update={"spec": spec})
    running_status, end_status = (
        status_after(a_job, NO_TRAINING_JOB, facts(RUNNING)),
        status_after(a_job, NO_TRAINING_JOB, facts(RUNNING), facts(COMPLETED_JOB)),
    )
    assert running_status.ranks is not None
    assert end_status.ranks is not None
    assert (running_status.ranks.world, running_status.nodes) == (16, NodeCounts(desired=4, ready=4))
    assert (end_status.phase, end_status.message, end_status.ranks.ready) == (
        "Succeeded",
        "All 16 ranks succeeded",
        "0/16",
    )


@pytest.mark.parametrize(
    ("failure_reason", "reason", "next_step"),
    [
        ("CapacityError: Unable to provision requested ML compute capacity.", "InsufficientCapacity", "Retry"),
        ("InternalServerError: We encountered an internal error.", "InternalServerError", "Restart"),
        ("AlgorithmError: ExecuteUserScriptError:\nExitCode 1", "AlgorithmError", "Restart"),
        ("ClientError: Data download failed", "ClientError", "None"),
        ("Something else went wrong", "TrainingJobFailed", "Restart"),
        (None, "TrainingJobFailed", "Restart"),
    ],
)
def test_the_failure_reason_decides_what_follows(failure_reason: str | None, reason: str, next_step: str) -> None:
    end = classify_training_failure(make_training_job("Starting", final_status="Failed", reason=failure_reason))
    assert (end.reason, end.next_step.value) == (reason, next_step)


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-west-2", "us-west-2.console.aws.amazon.com"),
        ("cn-north-1", "console.amazonaws.cn"),
        ("us-gov-west-1", "us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_the_console_url_has_the_host_of_the_partition(region: str, host: str) -> None:
    assert build_console_url(region, "vit-1") == f"https://{host}/sagemaker/home?region={region}#/jobs/vit-1"


def _condition(status: Status, kind: str) -> tuple[str, str]:
    result: Condition = next(entry for entry in status.conditions if entry.type == kind)
    return result.status, result.reason


@pytest.mark.parametrize(("seconds_without_step", "status"), [(STALL_SECONDS - 1, "False"), (STALL_SECONDS, "True")])
def test_ranks_that_complete_no_steps_stall_the_job(seconds_without_step: float, status: str) -> None:
    idle_rank = rank(0, step=5, highest_step_at=T0 + 30, last_step_at=T0 + 30)
    report = Report(UID, 0, 0, 1, 0, AgentPhase.RUNNING, ranks=(idle_rank.report,))
    agent = AgentFacts(report, T0 + 30 + seconds_without_step, (idle_rank,))
    job_status = status_after(
        job(), NO_TRAINING_JOB, facts(RUNNING, agents=(agent,)), now=T0 + 30 + seconds_without_step
    )
    stalled = job_status.find_condition("Stalled")
    assert stalled is not None
    assert (stalled.status, job_status.phase) == (status, "Running")
    assert (job_status.hang is not None) == (status == "True")
