"""Finds the arguments of the SageMaker SDK's classes, in their order. It runs without muster."""

import inspect
from typing import Any

from sagemaker import debugger, image_uris, inputs
from sagemaker.estimator import Estimator, EstimatorBase, Framework
from sagemaker.huggingface import HuggingFace
from sagemaker.instance_group import InstanceGroup
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session
from sagemaker.tensorflow import TensorFlow

KINDS: tuple[Any, ...] = (
    *(EstimatorBase, Estimator, Framework, PyTorch, TensorFlow, HuggingFace, InstanceGroup, Session),
    *(inputs.TrainingInput, inputs.FileSystemInput, inputs.ShuffleConfig),
    *(debugger.CollectionConfig, debugger.DebuggerHookConfig, debugger.TensorBoardOutputConfig),
    *(debugger.ProfilerConfig, debugger.Profiler, debugger.FrameworkProfile),
)


def named(function: Any) -> list[str]:
    """Return the names of a function's arguments, without the first one, *args and **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD][1:]


def find_signatures() -> dict[str, list[str]]:
    """Return the names of arguments by class, and by function."""
    found = {kind.__name__: named(kind.__init__) for kind in KINDS}
    found["fit"] = named(EstimatorBase.fit)
    found["upload_data"] = named(Session.upload_data)
    found["retrieve"] = named(image_uris.retrieve)
    return found
