"""Render a job as a CreateTrainingJob request for Amazon SageMaker. Pure."""

from muster.api.document import JSON
from muster.api.spec.job import Job, Spec
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.sagemaker.launch import Launch, decide_launch, uses_some_instance_groups
from muster.api.spec.sagemaker.resources import Experiment
from muster.api.spec.sagemaker.spec import SageMaker
from muster.render.sagemaker.image_catalogue import ImageFacts
from muster.render.sagemaker.rank_reports import with_agent, with_rank_reports
from muster.render.sagemaker.request.algorithm import algorithm
from muster.render.sagemaker.request.channels import channels
from muster.render.sagemaker.request.code import code
from muster.render.sagemaker.request.debugging import debugging
from muster.render.sagemaker.request.hyperparameters import hyperparameters
from muster.render.sagemaker.request.limits import refuse_what_is_too_much
from muster.render.sagemaker.request.places import checkpoint, output
from muster.render.sagemaker.request.resources import networking, resources, stopping
from muster.render.sagemaker.request.setting import Setting
from muster.render.sagemaker.request.start_script import starts_ranks
from muster.render.sagemaker.request.training_request import Fields, TrainingRequest


def request(job: Job, setting: Setting, facts: ImageFacts) -> TrainingRequest:
    """Return the request for a valid job of backend SageMaker.

    Raises `InvalidResource` for problems that only the rendered request shows: an unknown image, or an exceeded limit.
    """
    spec, block = job.spec, block_of(job.spec)
    how = decide_launch(spec)
    source = code(job, how, setting)
    body: Fields = {
        "TrainingJobName": setting.training_job,
        "RoleArn": block.role,
        "AlgorithmSpecification": algorithm(job, how, source, setting, facts),
        **_hyperparameters(hyperparameters(job, how, source, setting), how),
        **_unless_empty("Environment", _environment(spec)),
        **_unless_empty("InputDataConfig", channels(spec, source)),
        "OutputDataConfig": output(spec, setting),
        **_unless_empty("CheckpointConfig", checkpoint(spec)),
        "ResourceConfig": resources(spec, block),
        "StoppingCondition": stopping(block),
        **networking(block),
        **debugging(spec, setting, facts),
        **_options(block),
        **_unless_empty("Tags", _tags(block, setting)),
    }
    refuse_what_is_too_much(body)
    request_without_reports = TrainingRequest(body, source.archive)
    # Programs on other instance groups would report, too, and their reports can't be told from the ranks'.
    wanted = "Off" if uses_some_instance_groups(block) else block.rank_reports
    return (with_agent if starts_ranks(spec, how) else with_rank_reports)(request_without_reports, wanted)


def _hyperparameters(result: Fields, how: Launch) -> Fields:
    # SDK 3 also sends an empty map.
    return {"HyperParameters": result} if result or how.start == "Channels" else {}


def _unless_empty(name: str, value: Fields | list[JSON]) -> Fields:
    return {name: value} if value else {}


def _tags(block: SageMaker, setting: Setting) -> list[JSON]:
    return [{"Key": name, "Value": value} for name, value in (*block.tags.items(), *setting.tags)]


def _environment(spec: Spec) -> Fields:
    """Environment: the job's variables, all with literal values because validation requires it."""
    return {variable.name: variable.value for variable in spec.env}


def _options(block: SageMaker) -> Fields:
    """Spot instances, retries, checks, connections and the experiment, if the job sets them."""
    fields: Fields = {}
    if block.spot is not None:
        fields["EnableManagedSpotTraining"] = True
    if block.retry is not None:
        fields["RetryStrategy"] = {"MaximumRetryAttempts": block.retry.attempts}
    if block.remote_debug is not None:
        fields["RemoteDebugConfig"] = {"EnableRemoteDebug": block.remote_debug == "Enabled"}
    if block.infra_check is not None:
        fields["InfraCheckConfig"] = {"EnableInfraCheck": block.infra_check == "Enabled"}
    if block.session_tag_chaining is not None:
        fields["SessionChainingConfig"] = {"EnableSessionTagChaining": block.session_tag_chaining == "Enabled"}
    experiment = _experiment(block.experiment)
    return {**fields, "ExperimentConfig": experiment} if experiment else fields


def _experiment(experiment: Experiment | None) -> Fields:
    if experiment is None:
        return {}
    names = {
        "ExperimentName": experiment.experiment_name,
        "TrialName": experiment.trial_name,
        "TrialComponentDisplayName": experiment.trial_component_display_name,
        "RunName": experiment.run_name,
    }
    return {name: value for name, value in names.items() if value is not None}
