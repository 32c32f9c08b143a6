"""Render the request's image and its command. Pure."""

from muster.api.spec.job import Job, Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.framework import Framework
from muster.api.spec.sagemaker.launch import SERVICE_COMMAND, Launch
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.support import parse_version
from muster.render.sagemaker.image_catalogue import ImageFacts
from muster.render.sagemaker.request.code import Code, get_script_command, prepend_unpacking
from muster.render.sagemaker.request.drivers import START_PROGRAM
from muster.render.sagemaker.request.image import choose_image
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.training_request import Fields
from muster_worker.sagemaker.arguments import to_arguments

_FIRST_WITH_TIME_SERIES = {"PyTorch": (1, 3), "TensorFlow": (1, 15)}
"""The first versions with metrics time series (enable_sagemaker_metrics in pytorch/estimator.py and
tensorflow/estimator.py). Hugging Face always has them."""


def render_algorithm(job: Job, launch: Launch, source: Code, settings: RequestSettings, facts: ImageFacts) -> Fields:
    """Return the AlgorithmSpecification. Raises `InvalidResource` if AWS has no such image."""
    spec, block = job.spec, get_sagemaker_block(job.spec)
    fields: Fields = {
        "TrainingImage": choose_image(spec, settings.region, facts),
        "TrainingInputMode": block.input_mode,
    }
    entrypoint, arguments = make_container_command(spec, launch, source)
    if entrypoint:
        fields["ContainerEntrypoint"] = list(entrypoint)
    if arguments:
        fields["ContainerArguments"] = list(arguments)
    if spec.metrics:
        fields["MetricDefinitions"] = [{"Name": metric.name, "Regex": metric.regex} for metric in spec.metrics]
    series = _choose_time_series(block, launch)
    if series is not None:
        fields["EnableSageMakerMetricsTimeSeries"] = series
    if block.image_repository is not None:
        fields["TrainingImageConfig"] = _render_repository(block)
    return fields


def make_container_command(spec: Spec, launch: Launch, source: Code) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the container's entry point and arguments. Empty means the image's own."""
    block = get_sagemaker_block(spec)
    if block.container_entrypoint or block.container_arguments:
        return block.container_entrypoint, block.container_arguments
    if launch.start == "Channels":
        return ("/bin/bash",), ("-c", f"chmod +x {START_PROGRAM} && {START_PROGRAM}")
    if launch.start == "Toolkit" or (spec.command == SERVICE_COMMAND and not source.channel):
        return (), ()
    command = get_script_command() if launch.uses_start_script else spec.command
    words = (*command, *to_arguments(spec.hyperparameters))
    words = prepend_unpacking(words) if source.channel else words
    return words[:1], words[1:]


def _choose_time_series(block: SageMaker, launch: Launch) -> bool | None:
    if block.metrics_time_series is not None:
        return block.metrics_time_series == "Enabled"
    if block.framework is None or launch.start != "Toolkit":
        return None
    return True if _has_time_series(block.framework) else None


def _has_time_series(framework: Framework) -> bool:
    if framework.name == "HuggingFace":
        return True
    return framework.version is not None and parse_version(framework.version) >= _FIRST_WITH_TIME_SERIES[framework.name]


def _render_repository(block: SageMaker) -> Fields:
    repository = block.image_repository
    if repository is None:
        return {}
    fields: Fields = {"TrainingRepositoryAccessMode": repository.access}
    if repository.credentials_provider_arn is not None:
        fields["TrainingRepositoryAuthConfig"] = {
            "TrainingRepositoryCredentialsProviderArn": repository.credentials_provider_arn
        }
    return fields
