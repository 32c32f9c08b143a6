"""Writes cases as users' launch scripts."""

from collections.abc import Sequence

from muster.api.document import JSON
from sagemaker_sdk.estimator_cases import Case
from sagemaker_sdk.trainer_cases import TrainerCase

IMPORTS = """\
import boto3
from sagemaker import Session
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, ProfilerConfig, ProfilerRule, Rule
from sagemaker.debugger import TensorBoardOutputConfig
from sagemaker.estimator import Estimator
from sagemaker.huggingface import HuggingFace
from sagemaker.inputs import FileSystemInput, ShuffleConfig, TrainingInput
from sagemaker.instance_group import InstanceGroup
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow
"""

TRAINER_IMPORTS = """\
import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.shapes import *
from sagemaker.core.training.configs import *
from sagemaker.train import ModelTrainer
from sagemaker.train.distributed import MPI, SMP, Torchrun
"""

SOURCE = "code"
"""The folder of the training scripts, beside the launch script."""

MADE_BY = {"Rule": "Rule.custom", "ProfilerRule": "ProfilerRule.custom"}


def launch_script(cases: Sequence[Case], role: str) -> str:
    """Return a script that starts a training job for each case, in their order."""
    return IMPORTS + "\n".join(_fit(case, role) for case in cases) + "\n"


def _fit(case: Case, role: str) -> str:
    has_script = case.estimator != "Estimator" or "entry_point" in case.kwargs
    script: dict[str, JSON] = {"entry_point": "train.py", "source_dir": SOURCE} if has_script else {}
    value = _format_arguments({"role": role, **script, **case.kwargs})
    session = f"Session(boto3.Session(region_name={case.region!r}))"
    called = f"{_format_value(case.inputs)}, job_name={case.name!r}"
    return f"{case.estimator}({value}, sagemaker_session={session}).fit({called})"


def trainer_script(cases: Sequence[TrainerCase], role: str) -> str:
    """Return a script that starts a training job with SDK 3 for each case, in their order."""
    return TRAINER_IMPORTS + "\n".join(_train(case, role) for case in cases) + "\n"


def _train(case: TrainerCase, role: str) -> str:
    session = f"Session(boto3.Session(region_name={case.region!r}), {_format_arguments(case.session)})"
    trainer = f"ModelTrainer({_format_arguments({'role': role, **case.arguments})}, sagemaker_session={session})"
    methods = "".join(f".{name}({_format_value(value)})" for name, value in case.methods.items())
    return f"{trainer}{methods}.train({_format_value(case.inputs)}, wait=False, logs=False)"


def _format_arguments(fields: dict[str, JSON]) -> str:
    return ", ".join(f"{name}={_format_value(value)}" for name, value in fields.items() if name != "__type__")


def _format_value(value: JSON) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_format_value(item) for item in value)}]"
    if not isinstance(value, dict):
        return repr(value)
    if "__type__" in value:
        kind = str(value["__type__"])
        return f"{MADE_BY.get(kind, kind)}({_format_arguments(value)})"
    return f"{{{', '.join(f'{name!r}: {_format_value(item)}' for name, item in value.items())}}}"
