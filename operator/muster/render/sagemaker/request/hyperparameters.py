"""Render the hyperparameters of the user and of SageMaker's toolkit, all as text. Pure."""

import json
from collections.abc import Mapping

from muster.api.document import JSON, quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job, Spec
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.sagemaker.framework import Framework
from muster.api.spec.sagemaker.launch import Launch
from muster.api.spec.sagemaker.spec import SageMaker
from muster.render.sagemaker.request.code import Code
from muster.render.sagemaker.request.distribution import MPI_ENABLED, distribution_parameters
from muster.render.sagemaker.request.places import joined, output_uri
from muster.render.sagemaker.request.setting import Setting
from muster.render.sagemaker.request.training_request import Fields

_MODEL_FOLDER = "/opt/ml/model"


def hyperparameters(job: Job, how: Launch, source: Code, setting: Setting) -> Fields:
    """HyperParameters. Raises `InvalidResource` if the toolkit's would replace the user's."""
    spec, block = job.spec, block_of(job.spec)
    own = _encoded(_toolkit(spec, block, how, source, setting))
    value = {**_user(spec, how), **block.raw_hyperparameters}
    _refuse_conflicts(spec, own)
    return {**value, **own}


def _user(spec: Spec, how: Launch) -> dict[str, str]:
    """The portable hyperparameters in the SDK's encoding: JSON for the toolkit, else Python's str().

    For Channels as in SDK 3: strings stay unchanged, other values are JSON (sagemaker/train/utils.py, safe_serialize).
    """
    if how.start == "Toolkit":
        return {name: json.dumps(value) for name, value in spec.hyperparameters.items()}
    if how.start == "Channels":
        return {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in spec.hyperparameters.items()
        }
    return {name: str(value) for name, value in spec.hyperparameters.items()}


def _toolkit(spec: Spec, block: SageMaker, how: Launch, source: Code, setting: Setting) -> dict[str, JSON]:
    if how.start != "Toolkit":
        return {}
    fields: dict[str, JSON] = {
        "sagemaker_submit_directory": source.directory,
        "sagemaker_program": how.program,
        "sagemaker_container_log_level": block.container_log_level,
        "sagemaker_job_name": setting.training_job,
        "sagemaker_region": setting.region,
    }
    framework = block.framework
    if framework is None:
        return fields
    if how.distribution is not None:
        fields.update(distribution_parameters(spec, block, framework, how.distribution))
    return {**fields, **_model_dir(spec, framework, setting, fields)}


def _model_dir(spec: Spec, framework: Framework, setting: Setting, fields: Mapping[str, JSON]) -> dict[str, JSON]:
    """TensorFlow's model_dir (tensorflow/estimator.py, hyperparameters)."""
    if framework.name != "TensorFlow" or framework.model_dir == "None":
        return {}
    if framework.model_dir != "Auto":
        return {"model_dir": framework.model_dir}
    if fields.get(MPI_ENABLED) is True:
        return {"model_dir": _MODEL_FOLDER}
    return {"model_dir": joined(output_uri(spec, setting), setting.training_job, "model")}


def _encoded(fields: Mapping[str, JSON]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in fields.items()}


def _refuse_conflicts(spec: Spec, own: Mapping[str, str]) -> None:
    raw = spec.sagemaker.raw_hyperparameters if spec.sagemaker is not None else {}
    fields = {"spec.hyperparameters": list(spec.hyperparameters), "spec.sagemaker.rawHyperparameters": list(raw)}
    conflicts = [
        FieldProblem(f"{field}[{quote(name)}]", "muster sets this hyperparameter itself; remove it")
        for field, names in fields.items()
        for name in names
        if name in own
    ]
    if conflicts:
        raise InvalidResource(tuple(conflicts))
