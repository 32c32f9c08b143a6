"""Check the rendered request against SageMaker's limits. Pure.

The limits are those of CreateTrainingJob in botocore's service model of 2017-07-24.
"""

from collections.abc import Iterator

from muster.api.document import quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.render.sagemaker.request.training_request import Fields

MAX_HYPERPARAMETERS = 100
MAX_HYPERPARAMETER_NAME = 256
MAX_HYPERPARAMETER_VALUE = 2500
MAX_CHANNELS = 20
MAX_TAGS = 50
MAX_WORDS = 100
MAX_WORD = 256
MAX_IMAGE = 255


def check_limits(body: Fields) -> None:
    """Raise `InvalidResource` with every field that exceeds a limit of SageMaker."""
    problems = (*_check_hyperparameters(body), *_check_channels(body), *_check_tags(body), *_check_container(body))
    if problems:
        raise InvalidResource(problems)


def _check_hyperparameters(body: Fields) -> Iterator[FieldProblem]:
    result = body.get("HyperParameters")
    values = result if isinstance(result, dict) else {}
    if len(values) > MAX_HYPERPARAMETERS:
        toolkit = sum(name.startswith("sagemaker_") for name in values)
        yield FieldProblem(
            "spec.hyperparameters",
            f"found {len(values)}, {toolkit} of them for SageMaker's toolkit; SageMaker allows {MAX_HYPERPARAMETERS}",
        )
    for name, value in values.items():
        chars = len(str(value))
        if chars > MAX_HYPERPARAMETER_VALUE:
            yield FieldProblem(
                f"spec.hyperparameters[{quote(name)}]",
                f"found {chars} encoded characters; SageMaker allows {MAX_HYPERPARAMETER_VALUE}: put it in a file",
            )
        if len(name) > MAX_HYPERPARAMETER_NAME:
            yield FieldProblem(
                f"spec.hyperparameters[{quote(name)}]",
                f"found a name of {len(name)} characters; SageMaker allows {MAX_HYPERPARAMETER_NAME}",
            )


def _check_channels(body: Fields) -> Iterator[FieldProblem]:
    result = body.get("InputDataConfig")
    names = (
        [str(channel.get("ChannelName")) for channel in result or () if isinstance(channel, dict)]
        if isinstance(result, list)
        else []
    )
    if len(names) > MAX_CHANNELS:
        yield FieldProblem("spec.inputs", f"found {len(names)} with the code's own; SageMaker allows {MAX_CHANNELS}")
    for index, name in enumerate(names):
        if name in names[:index]:
            yield FieldProblem("spec.inputs", f"found {quote(name)}, which the job's code needs; give it another name")


def _check_tags(body: Fields) -> Iterator[FieldProblem]:
    result = body.get("Tags")
    tags = [tag for tag in result if isinstance(tag, dict)] if isinstance(result, list) else []
    names = [str(tag["Key"]) for tag in tags]
    if len(names) > MAX_TAGS:
        yield FieldProblem("spec.sagemaker.tags", f"found {len(names)} with muster's own; SageMaker allows {MAX_TAGS}")


def _check_container(body: Fields) -> Iterator[FieldProblem]:
    algorithm = body["AlgorithmSpecification"]
    fields = algorithm if isinstance(algorithm, dict) else {}
    for field, path in (("ContainerEntrypoint", "spec.command"), ("ContainerArguments", "spec.command")):
        result = fields.get(field)
        words = [str(word) for word in result] if isinstance(result, list) else []
        if len(words) > MAX_WORDS:
            yield FieldProblem(path, f"found {len(words)} words with the hyperparameters; SageMaker allows {MAX_WORDS}")
        for word in words:
            if len(word) > MAX_WORD:
                yield FieldProblem(
                    path,
                    f"found {quote(word)} of {len(word)} characters; SageMaker allows {MAX_WORD}: put it in a file",
                )
    image = str(fields.get("TrainingImage"))
    if len(image) > MAX_IMAGE:
        yield FieldProblem("spec.image", f"found {len(image)} characters; SageMaker allows {MAX_IMAGE}")
