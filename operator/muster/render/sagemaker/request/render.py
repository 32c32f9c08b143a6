"""Render a job as a CreateTrainingJob request for Amazon SageMaker. Pure."""

from muster.api.document import JSON
from muster.api.spec.job import Job, Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.launch import Launch, decide_launch, uses_some_instance_groups
from muster.api.spec.sagemaker.resources import Experiment
from muster.api.spec.sagemaker.spec import SageMaker
from muster.render.sagemaker.image_catalogue import ImageFacts
from muster.render.sagemaker.rank_reports import add_agent, add_rank_reports
from muster.render.sagemaker.request.algorithm import render_algorithm
from muster.render.sagemaker.request.channels import render_channels
from muster.render.sagemaker.request.code import choose_code
from muster.render.sagemaker.request.debugging import render_debugging
from muster.render.sagemaker.request.hyperparameters import render_hyperparameters
from muster.render.sagemaker.request.limits import check_limits
from muster.render.sagemaker.request.places import render_checkpoint, render_output
from muster.render.sagemaker.request.resources import render_networking, render_resources, render_stopping_condition
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.start_script import does_script_start_ranks
from muster.render.sagemaker.request.training_request import Fields, TrainingRequest


def render_request(job: Job, settings: RequestSettings, facts: ImageFacts) -> TrainingRequest:
    """Return the request for a valid job of backend SageMaker.

    Raises `InvalidResource` for an unknown image or an exceeded limit.
    """
    spec, block = job.spec, get_sagemaker_block(job.spec)
    launch = decide_launch(spec)
    source = choose_code(job, launch, settings)
    body: Fields = {
        "TrainingJobName": settings.training_job_name,
        "RoleArn": block.role,
        "AlgorithmSpecification": render_algorithm(job, launch, source, settings, facts),
        **_render_optional_hyperparameters(render_hyperparameters(job, launch, source, settings), launch),
        **_render_unless_empty("Environment", _render_environment(spec)),
        **_render_unless_empty("InputDataConfig", render_channels(spec, source)),
        "OutputDataConfig": render_output(spec, settings),
        **_render_unless_empty("CheckpointConfig", render_checkpoint(spec)),
        "ResourceConfig": render_resources(spec, block),
        "StoppingCondition": render_stopping_condition(block),
        **render_networking(block),
        **render_debugging(spec, settings, facts),
        **_render_options(block),
        **_render_unless_empty("Tags", _render_tags(block, settings)),
    }
    check_limits(body)
    request_without_reports = TrainingRequest(body, source.archive)
    # Programs on other instance groups would report as well, and look like ranks.
    report_mode = "Off" if uses_some_instance_groups(block) else block.rank_reports
    return (add_agent if does_script_start_ranks(spec, launch) else add_rank_reports)(
        request_without_reports, report_mode
    )


def _render_optional_hyperparameters(result: Fields, launch: Launch) -> Fields:
    # SDK 3 sends an empty map, too.
    return {"HyperParameters": result} if result or launch.start == "Channels" else {}


def _render_unless_empty(name: str, value: Fields | list[JSON]) -> Fields:
    return {name: value} if value else {}


def _render_tags(block: SageMaker, settings: RequestSettings) -> list[JSON]:
    return [{"Key": name, "Value": value} for name, value in (*block.tags.items(), *settings.tags)]


def _render_environment(spec: Spec) -> Fields:
    """Return the Environment: the job's variables. Validation ensures that all have literal values."""
    return {variable.name: variable.value for variable in spec.env}


def _render_options(block: SageMaker) -> Fields:
    """Return the fields for spot instances, retries, checks, connections and the experiment."""
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
    experiment = _render_experiment(block.experiment)
    return {**fields, "ExperimentConfig": experiment} if experiment else fields


def _render_experiment(experiment: Experiment | None) -> Fields:
    if experiment is None:
        return {}
    names = {
        "ExperimentName": experiment.experiment_name,
        "TrialName": experiment.trial_name,
        "TrialComponentDisplayName": experiment.trial_component_display_name,
        "RunName": experiment.run_name,
    }
    return {name: value for name, value in names.items() if value is not None}
