"""The life of SageMaker jobs, from the resource to the training job and back, in virtual time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from fakes.sagemaker_service.faults import Fault
from fakes.sagemaker_service.jobs import ENDED
from fakes.sagemaker_service.policy import Policy
from fakes.sagemaker_service.script import (
    Stage,
    make_completing_script,
    make_failing_script,
    make_stages_before_training,
)
from fakes.sagemaker_site.life import run_scenario
from fakes.sagemaker_site.site import HERE, Site, Wire, make_spec
from muster.api.backends import TRAINING_JOB_FINALIZER
from muster.api.document import Document
from muster.api.validation.validate import validate
from muster.render.sagemaker.job_warnings import make_training_warnings

NAME = "vit-4a49acf8a6-1"
LOGS = Path(__file__).parents[2] / "unit" / "diagnose" / "sagemaker" / "logs"


def test_all_that_sagemaker_tells_is_in_the_status(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        running = site.get_status()
        assert running.message == "Training: Training image download completed. Training in progress."
        assert running.ranks is not None
        assert [(one.state, one.ranks) for one in running.ranks.by_state] == [("Unknown", "0-1")]
        assert running.ranks.details == ()
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        value = site.record()
        assert [one.status for one in value.history] == [
            "Starting",
            "Downloading",
            "Training",
            "Uploading",
            "Completed",
        ]
        assert (value.training_job_name, value.attempt, value.status) == (NAME, 1, "Completed")
        assert value.arn == f"arn:aws:sagemaker:us-west-2:111122223333:training-job/{NAME}"
        assert (value.billable_seconds, value.instance_type, value.instance_count) == (80, "ml.c5.xlarge", 2)
        assert (
            value.console_url
            == f"https://us-west-2.console.aws.amazon.com/sagemaker/home?region=us-west-2#/jobs/{NAME}"
        )
        progress = site.get_status().progress
        assert progress is not None
        assert progress.metrics == {"loss": 0.25}
        assert site.get_status().message == "All 2 ranks succeeded"

    run_scenario(wire, life)


def test_the_rank_that_failed_first_is_named(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_failing_script(
            "AlgorithmError: ExecuteUserScriptError: ExitCode 1", 60.0
        )
        site.stored.create("vit", make_spec(**_toolkit()))
        await site.wait_until(lambda: site.get_phase() == "Running")
        for host in (1, 2):
            for line in (LOGS / f"torchrun-raise-silent-algo-{host}.log").read_text(encoding="utf-8").splitlines():
                site.logs.write(NAME, host, line, after=30.0)
        await site.wait_until(lambda: site.get_phase() == "Failed")
        assert site.get_status().message.startswith("Rank 3 on algo-2 failed with exit code 1")
        assert site.find_condition("Failed")[:2] == ("True", "RankFailed")
        assert site.record().failure_reason == "AlgorithmError: ExecuteUserScriptError: ExitCode 1"

    run_scenario(wire, life)


def test_missing_capacity_is_reported_and_waited_for(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().quota["ml.c5.xlarge"] = 0
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.record_if_any() is not None and site.record().retry is not None)
        assert site.get_phase() == "Pending"
        assert site.find_condition("Scheduled")[:2] == ("False", "NoCapacity")
        assert site.find_condition("Stalled")[0] == "False"
        assert "The account-level service limit 'ml.c5.xlarge for training job usage' is 0" in site.get_status().message
        await site.wait_until(lambda: (retry := site.record().retry) is not None and retry.tries == 4)
        asked = [call.at.timestamp() for call in site.service.list_calls("CreateTrainingJob")]
        pauses = [after - before for before, after in pairwise(asked)]
        assert pauses == sorted(pauses)
        assert pauses[-1] > 2 * pauses[0]
        site.service.get_jobs().quota.clear()
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        assert list(site.service.get_jobs().by_name) == [NAME]

    run_scenario(wire, life)


def test_missing_rights_are_a_condition_and_are_asked_for_again(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.policy = _policy("sagemaker:DescribeTrainingJob", "sagemaker:ListTrainingJobs")
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.find_condition("Stalled")[1] == "AwsAccessDenied")
        message = site.find_condition("Stalled")[2]
        assert "is not allowed to do sagemaker:CreateTrainingJob on " in message
        assert site.find_condition("Accepted")[0] == "True"
        site.service.policy = None
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        assert site.find_condition("Stalled")[0] == "False"

    run_scenario(wire, life)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(Fault.EXPIRED, "AwsCredentialsExpired"), (Fault.UNKNOWN_CALLER, "AwsCredentialsMissing")],
)
@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_credentials_that_are_no_good_are_a_condition_until_there_are_others(
    wire: Wire, fault: Fault, reason: str, phase: str
) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_completing_script(900.0)
        if phase == "Running":
            site.stored.create("vit", make_spec())
            await site.wait_until(lambda: site.get_phase() == "Running")
        site.service.faults.chance = lambda _: fault
        if phase == "Pending":
            site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.find_condition("Stalled")[1] == reason)
        assert (site.get_phase(), site.find_condition("Accepted")[0]) == (phase, "True")
        site.service.faults.chance = lambda _: None
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        assert site.find_condition("Stalled")[0] == "False"
        assert len(site.service.get_jobs().by_name) == 1

    run_scenario(wire, life)


def test_a_finalizer_is_given_up_when_the_credentials_have_expired_for_good(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.service.faults.chance = lambda _: Fault.EXPIRED
        deleted_at = site.get_now()
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert site.get_now() - deleted_at > 590
        await site.wait_until_settled(5.0)
        (event,) = [one for one in site.stored.events if one["reason"] == "TrainingJobLeftRunning"]
        assert "expired" in event["message"]

    run_scenario(wire, life)


def test_a_request_that_is_refused_is_not_accepted(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.faults.chance = lambda _: None
        site.stored.create(
            "vit", make_spec(sagemaker={**make_spec()["sagemaker"], "maxRunSeconds": 28 * 86400}, command=["x"] * 120)
        )
        await site.wait_until(lambda: site.find_condition("Accepted")[0] == "False")
        assert site.find_condition("Stalled")[0] == "True"
        assert not site.service.get_jobs().by_name

    run_scenario(wire, life)


def test_a_foreign_training_job_is_left_alone(wire: Wire) -> None:
    async def life(site: Site) -> None:
        request = {"TrainingJobName": NAME, **_plain_request()}
        site.service.get_jobs().create(request, site.service.now())
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.find_condition("Stalled")[1] == "TrainingJobExists")
        assert "it doesn't belong to this job" in site.get_status().message
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert not site.service.list_calls("StopTrainingJob")

    run_scenario(wire, life)


def test_who_has_to_wait_for_a_name_asks_for_it_once(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().create({"TrainingJobName": NAME, **_plain_request()}, site.service.now())
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.find_condition("Stalled")[1] == "TrainingJobExists")
        await site.wait_until_settled(600.0)
        assert len(site.service.list_calls("CreateTrainingJob")) == 1
        site.service.policy = None
        await site.wait_until_settled(300.0)
        del site.service.get_jobs().by_name[NAME]
        await site.wait_until(lambda: site.get_phase() == "Succeeded")

    run_scenario(wire, life)


def test_a_foreign_training_job_is_not_deleted_with_the_job(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.policy = None
        site.service.get_jobs().create({"TrainingJobName": NAME, **_plain_request()}, site.service.now())
        site.stored.create("vit", make_spec(activeDeadlineSeconds=60, ttlSecondsAfterFinished=10))
        await site.wait_until(lambda: site.get_phase() == "Failed")
        await site.wait_until_settled(3600.0)
        assert not site.service.list_calls("DeleteTrainingJob")
        assert not site.service.list_calls("StopTrainingJob")

    run_scenario(wire, life)


def test_a_forged_status_stops_no_foreign_training_job(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        site.stored.create("victim", make_spec())
        await site.wait_until(lambda: site.get_phase("victim") == "Running")
        victims = site.record("victim")
        site.stored.create("vit", make_spec(suspend=True))
        await site.wait_until(lambda: site.get_phase() == "Suspended")
        record = victims.model_dump(mode="json", by_alias=True)
        site.stored.forge("vit", [TRAINING_JOB_FINALIZER], backend={"sagemaker": record})
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert not site.service.list_calls("StopTrainingJob")
        assert not site.service.list_calls("DeleteTrainingJob")

    run_scenario(wire, life)


@pytest.mark.parametrize("earlier", [0, 2])
def test_a_training_job_that_no_status_tells_of_is_found_and_stopped(wire: Wire, earlier: int) -> None:
    async def life(site: Site) -> None:
        scripts = [
            make_stages_before_training(),
            *(make_failing_script("AlgorithmError: it broke") for _ in range(earlier)),
        ]
        site.service.get_jobs().script = lambda _: scripts.pop()
        site.stored.create("vit", make_spec(failurePolicy={"maxRestarts": earlier}))
        await site.wait_until(lambda: site.get_phase() == "Running" and site.record().attempt == earlier + 1)
        site.kill_operator()
        site.stored.remove_status("vit")
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        (stopped,) = site.service.list_calls("StopTrainingJob")
        assert str(stopped.request["TrainingJobName"]).endswith(f"-{earlier + 1}")
        states = {job.state(site.service.now())[1].status for job in site.service.get_jobs().by_name.values()}
        assert states <= set(ENDED)

    run_scenario(wire, life)


def test_a_lost_answer_makes_no_second_training_job(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.faults.add("CreateTrainingJob", Fault.DROP_AFTER)
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        assert list(site.service.get_jobs().by_name) == [NAME]

    run_scenario(wire, life)


def test_a_training_job_stopped_by_a_user_is_not_restarted(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        site.stored.create("vit", make_spec(failurePolicy={"maxRestarts": 3}))
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.service.get_jobs().stop({"TrainingJobName": NAME}, site.service.now())
        await site.wait_until(lambda: site.get_phase() == "Failed")
        assert site.find_condition("Failed")[1] == "StoppedElsewhere"
        assert site.get_status().message == f"Training job {NAME} was stopped: something other than muster stopped it"
        assert list(site.service.get_jobs().by_name) == [NAME]

    run_scenario(wire, life)


def test_a_missing_training_job_is_searched_for_before_the_job_fails(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        del site.service.get_jobs().by_name[NAME]
        site.kill_operator()
        await site.wait_until(lambda: site.find_condition("Stalled")[1] == "AwsNotFound")
        assert site.get_phase() == "Running"
        await site.wait_until(lambda: site.get_phase() == "Failed")
        assert site.find_condition("Failed")[1] == "TrainingJobGone"
        assert not site.service.get_jobs().by_name

    run_scenario(wire, life)


def test_restarts_are_counted_and_end(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_failing_script(
            "InternalServerError: We encountered an internal error."
        )
        site.stored.create("vit", make_spec(failurePolicy={"maxRestarts": 2}))
        await site.wait_until(lambda: site.get_phase() == "Failed")
        assert site.record().restarts == 2
        assert [(one.attempt, one.reason) for one in site.record().earlier] == [
            (1, "InternalServerError"),
            (2, "InternalServerError"),
        ]
        assert all(one.billable_seconds is not None for one in site.record().earlier)
        assert site.get_status().attempt == 3

    run_scenario(wire, life)


def test_what_the_job_asks_for_wrongly_is_not_tried_again(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_failing_script(
            "ClientError: No S3 objects found under S3 URL s3://team/none"
        )
        site.stored.create("vit", make_spec(failurePolicy={"maxRestarts": 2}))
        await site.wait_until(lambda: site.get_phase() == "Failed")
        assert site.find_condition("Failed")[1] == "ClientError"
        assert len(site.service.get_jobs().by_name) == 1

    run_scenario(wire, life)


def test_words_that_are_not_known_yet_are_kept(wire: Wire) -> None:
    async def life(site: Site) -> None:
        dreaming = Stage("Dreaming", 60.0, message="Dreaming of electric sheep")
        site.service.get_jobs().script = lambda _: (
            *make_stages_before_training()[:2],
            dreaming,
            *make_completing_script()[3:],
        )
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.record_if_any() is not None and site.record().secondary_status == "Dreaming")
        assert site.get_phase() == "Running"
        assert site.get_status().message == "Dreaming: Dreaming of electric sheep"
        await site.wait_until(lambda: site.get_phase() == "Succeeded")

    run_scenario(wire, life)


def test_the_finalizer_is_removed_if_muster_may_not_stop_the_training_job(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.service.policy = _policy("sagemaker:DescribeTrainingJob", "sagemaker:ListTrainingJobs")
        deleted_at = site.get_now()
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert site.get_now() - deleted_at > 590
        await site.wait_until_settled(5.0)
        (event,) = [one for one in site.stored.events if one["reason"] == "TrainingJobLeftRunning"]
        assert (
            f"`aws sagemaker stop-training-job --training-job-name {NAME} --region {HERE.region}`" in event["message"]
        )

    run_scenario(wire, life)


def test_a_job_that_is_over_is_deleted_without_aws(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Succeeded" and not _finalizers(site))
        asked = len(site.service.calls)
        site.stored.delete("vit")
        assert site.stored.read("vit") is None
        assert len(site.service.calls) == asked

    run_scenario(wire, life)


def test_what_was_kept_for_a_while_is_deleted_after_it(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec(ttlSecondsAfterFinished=600))
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        await site.wait_until_settled(590.0)
        assert list(site.service.get_jobs().by_name) == [NAME]
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert not site.service.get_jobs().by_name
        await site.wait_until_settled(600.0)
        assert len(site.service.list_calls("DeleteTrainingJob")) == 1

    run_scenario(wire, life)


def test_fields_for_clusters_only_are_reported_once(wire: Wire) -> None:
    async def life(site: Site) -> None:
        left_alone = {"queue": {"kueue": "team"}, "template": {"metadata": {"labels": {"a": "b"}}}}
        site.stored.create("vit", make_spec(**left_alone))
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.kill_operator()
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        resource = site.stored.read("vit")
        assert resource is not None
        (note,) = make_training_warnings(validate(Document(resource, "the resource")))
        assert site.find_condition("Accepted") == ("True", "ValidWithRemarks", f"The resource is valid; {note}")
        (event,) = [one for one in site.stored.events if one["reason"] == "ValidWithRemarks"]
        assert event["type"] == "Warning"
        assert "spec.queue, spec.template" in event["message"]

    run_scenario(wire, life)


def test_a_place_is_the_jobs_or_is_missing(wire: Wire) -> None:
    async def life(site: Site) -> None:
        block = {key: value for key, value in make_spec()["sagemaker"].items() if key != "region"}
        site.stored.create("vit", make_spec(sagemaker=block))
        await site.wait_until(lambda: site.find_condition("Accepted")[0] == "False")
        assert "spec.sagemaker.region: missing" in site.get_status().message
        site.stored.delete("vit")
        assert site.stored.read("vit") is None

    run_scenario(wire, life)


def _toolkit() -> dict[str, object]:
    """Torchrun by SageMaker's toolkit, with code that muster doesn't pack: so the ranks don't report."""
    block = {
        **make_spec()["sagemaker"],
        "framework": {"name": "PyTorch", "version": "2.0.0", "pythonVersion": "py310"},
        "instanceType": "ml.p3.8xlarge",
    }
    return {
        "launcher": {"torchrun": {}},
        "image": None,
        "procsPerNode": 2,
        "sagemaker": block,
        "source": {"s3": {"uri": "s3://team/code.tar.gz"}},
    }


def _finalizers(site: Site) -> list[str]:
    resource = site.stored.read("vit")
    return [] if resource is None else list(resource["metadata"].get("finalizers", []))


def _policy(*actions: str) -> Policy:
    allowed = {"Sid": "Some", "Effect": "Allow", "Action": list(actions), "Resource": "*"}
    return Policy({"Version": "2012-10-17", "Statement": [allowed]})


def _plain_request() -> dict[str, object]:
    return {
        "AlgorithmSpecification": {"TrainingImage": "i", "TrainingInputMode": "File"},
        "RoleArn": make_spec()["sagemaker"]["role"],
        "OutputDataConfig": {"S3OutputPath": "s3://team/out"},
        "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }
