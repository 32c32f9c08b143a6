"""The stand-in's modules, and the finder that imports them instead of the installed SDK and boto3."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from . import aws, estimators, inputs, session, trainer
from .errors import UnsupportedOperation
from .state import get_state

_REPLACED_PACKAGES = ("boto3", "botocore", "sagemaker", "sagemaker_core")


def _name_from_base(base: str, *_: object, **__: object) -> str:
    # The SDK appends the time. Here it would change the job's file with each import.
    return base


_SESSION = {"Session": session.Session, "get_execution_role": session.get_execution_role}
_S3 = {"S3Uploader": session.S3Uploader, "s3_path_join": session.s3_path_join}
_NAMES = {"name_from_base": _name_from_base, "unique_name_from_base": _name_from_base}
_IMAGES = {"retrieve": inputs.retrieve}
_GENERIC = {"Estimator": estimators.Estimator, "Framework": estimators.Framework}
_PYTORCH = {"PyTorch": estimators.PyTorch, "TrainingCompilerConfig": inputs.TrainingCompilerConfig}
_TENSORFLOW = {"TensorFlow": estimators.TensorFlow, "TrainingCompilerConfig": inputs.TrainingCompilerConfig}
_HUGGINGFACE = {"HuggingFace": estimators.HuggingFace, "TrainingCompilerConfig": inputs.TrainingCompilerConfig}
_RULES = {"Rule": inputs.Rule, "ProfilerRule": inputs.ProfilerRule}
_TRAINER = {"ModelTrainer": trainer.ModelTrainer, "Mode": trainer.Mode}
_LOCAL = {"LocalSession": aws.reject_local_mode}

_CONTENT: Mapping[str, Mapping[str, object]] = {
    "boto3": {"Session": aws.BotoSession, "client": aws.client, "resource": aws.resource},
    "boto3.session": {"Session": aws.BotoSession},
    "botocore.exceptions": {"ClientError": aws.ClientError, "NoCredentialsError": aws.NoCredentialsError},
    "sagemaker": {
        **_SESSION,
        **_LOCAL,
        "TrainingInput": inputs.INPUTS["TrainingInput"],
        "Profiler": inputs.DEBUGGER["Profiler"],
        "ProfilerConfig": inputs.DEBUGGER["ProfilerConfig"],
        "__version__": "2.257.7",
    },
    "sagemaker.debugger": {**inputs.DEBUGGER, **_RULES},
    "sagemaker.debugger.debugger": {**inputs.DEBUGGER, **_RULES},
    "sagemaker.estimator": _GENERIC,
    "sagemaker.huggingface": _HUGGINGFACE,
    "sagemaker.huggingface.estimator": _HUGGINGFACE,
    "sagemaker.image_uris": _IMAGES,
    "sagemaker.inputs": inputs.INPUTS,
    "sagemaker.instance_group": inputs.INPUTS,
    "sagemaker.local": _LOCAL,
    "sagemaker.pytorch": _PYTORCH,
    "sagemaker.pytorch.estimator": _PYTORCH,
    "sagemaker.s3": _S3,
    "sagemaker.session": _SESSION,
    "sagemaker.tensorflow": _TENSORFLOW,
    "sagemaker.tensorflow.estimator": _TENSORFLOW,
    "sagemaker.utils": _NAMES,
    "sagemaker.core.helper.session_helper": _SESSION,
    "sagemaker.core.image_uris": _IMAGES,
    "sagemaker.core.s3": _S3,
    "sagemaker.core.shapes": trainer.CONFIG_CLASSES,
    "sagemaker.core.training.configs": trainer.CONFIG_CLASSES,
    "sagemaker.modules": {"Session": session.Session, "get_execution_role": session.get_execution_role},
    "sagemaker.modules.configs": trainer.CONFIG_CLASSES,
    "sagemaker.modules.distributed": trainer.DISTRIBUTED_CLASSES,
    "sagemaker.modules.train": _TRAINER,
    "sagemaker.modules.train.model_trainer": _TRAINER,
    "sagemaker.train": {**_TRAINER, **_SESSION},
    "sagemaker.train.configs": trainer.CONFIG_CLASSES,
    "sagemaker.train.distributed": trainer.DISTRIBUTED_CLASSES,
    "sagemaker.train.model_trainer": _TRAINER,
}
"""The names for training jobs in SDK 2.257.7 and SDK 3.27.0. All other names are unknown values."""


class StandInModule(ModuleType):
    """A module whose names are unknown values unless they belong to training."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{self.__name__}.{name}" in _CONTENT:
            # `sagemaker.pytorch.PyTorch` works after `import sagemaker`, because the SDK imports its own modules.
            return importlib.import_module(f"{self.__name__}.{name}")
        return get_state().create_unknown(f"{self.__name__}.{name}")


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the stand-in's modules instead of installed packages."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002 - the import system's signature
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in _REPLACED_PACKAGES:
            return None
        if fullname.startswith("sagemaker.workflow"):
            raise UnsupportedOperation(
                f"{fullname}: muster can't import pipelines, because a job's file has only one training job"
            )
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> StandInModule:
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(_CONTENT.get(module.__name__, {}))


def install() -> None:
    """Replace the SDK and boto3 for the rest of the process."""
    sys.meta_path.insert(0, StandInFinder())
