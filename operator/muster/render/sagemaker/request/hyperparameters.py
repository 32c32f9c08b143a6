"""Render the hyperparameters of the user and of SageMaker's toolkit as text. Pure."""

import json
from collections.abc import Mapping

from muster.api.document import JSON, quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job, Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.framework import Framework
from muster.api.spec.sagemaker.launch import Launch
from muster.api.spec.sagemaker.spec import SageMaker
from muster.render.sagemaker.request.code import Code
from muster.render.sagemaker.request.distribution import MPI_ENABLED, make_distribution_parameters
from muster.render.sagemaker.request.places import get_output_uri, join_uri
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.training_request import Fields

_MODEL_FOLDER = "/opt/ml/model"


def render_hyperparameters(job: Job, launch: Launch, source: Code, settings: RequestSettings) -> Fields:
    """Return the HyperParameters. Raises `InvalidResource` if the toolkit's would replace the user's."""
    spec, block = job.spec, get_sagemaker_block(job.spec)
    toolkit_parameters = _encode(_make_toolkit_parameters(spec, block, launch, source, settings))
    value = {**_encode_user_hyperparameters(spec, launch), **block.raw_hyperparameters}
    _check_conflicts(spec, toolkit_parameters)
    return {**value, **toolkit_parameters}


def _encode_user_hyperparameters(spec: Spec, launch: Launch) -> dict[str, str]:
    """Return spec.hyperparameters in the SDK's encoding: JSON for the toolkit, otherwise Python's str().

    With Channels, strings stay unchanged and other values are JSON, as in SDK 3 (sagemaker/train/utils.py,
    safe_serialize).
    """
    if launch.start == "Toolkit":
        return {name: json.dumps(value) for name, value in spec.hyperparameters.items()}
    if launch.start == "Channels":
        return {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in spec.hyperparameters.items()
        }
    return {name: str(value) for name, value in spec.hyperparameters.items()}


def _make_toolkit_parameters(
    spec: Spec, block: SageMaker, launch: Launch, source: Code, settings: RequestSettings
) -> dict[str, JSON]:
    if launch.start != "Toolkit":
        return {}
    fields: dict[str, JSON] = {
        "sagemaker_submit_directory": source.directory,
        "sagemaker_program": launch.program,
        "sagemaker_container_log_level": block.container_log_level,
        "sagemaker_job_name": settings.training_job_name,
        "sagemaker_region": settings.region,
    }
    framework = block.framework
    if framework is None:
        return fields
    if launch.distribution is not None:
        fields.update(make_distribution_parameters(spec, block, framework, launch.distribution))
    return {**fields, **_make_model_dir(spec, framework, settings, fields)}


def _make_model_dir(
    spec: Spec, framework: Framework, settings: RequestSettings, fields: Mapping[str, JSON]
) -> dict[str, JSON]:
    """Return TensorFlow's model_dir (tensorflow/estimator.py, hyperparameters)."""
    if framework.name != "TensorFlow" or framework.model_dir == "None":
        return {}
    if framework.model_dir != "Auto":
        return {"model_dir": framework.model_dir}
    if fields.get(MPI_ENABLED) is True:
        return {"model_dir": _MODEL_FOLDER}
    return {"model_dir": join_uri(get_output_uri(spec, settings), settings.training_job_name, "model")}


def _encode(fields: Mapping[str, JSON]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in fields.items()}


def _check_conflicts(spec: Spec, toolkit_parameters: Mapping[str, str]) -> None:
    raw = spec.sagemaker.raw_hyperparameters if spec.sagemaker is not None else {}
    fields = {"spec.hyperparameters": list(spec.hyperparameters), "spec.sagemaker.rawHyperparameters": list(raw)}
    conflicts = [
        FieldProblem(f"{field}[{quote(name)}]", "muster sets this hyperparameter itself; remove it")
        for field, names in fields.items()
        for name in names
        if name in toolkit_parameters
    ]
    if conflicts:
        raise InvalidResource(tuple(conflicts))
