"""Finds the SageMaker SDK's lists of supported values. It runs without muster."""

from typing import Any

from sagemaker import fw_utils
from sagemaker.estimator import Framework
from sagemaker.tensorflow import TensorFlow

NAMES = (
    "SM_DATAPARALLEL_SUPPORTED_FRAMEWORK_VERSIONS",
    "TORCH_DISTRIBUTED_GPU_SUPPORTED_FRAMEWORK_VERSIONS",
    "TRAINIUM_SUPPORTED_TORCH_DISTRIBUTED_FRAMEWORK_VERSIONS",
    "DEBUGGER_UNSUPPORTED_REGIONS",
    "PROFILER_UNSUPPORTED_REGIONS",
)


def find_lists() -> dict[str, Any]:
    """Return the lists by their names in the SDK."""
    result = {name: getattr(fw_utils, name) for name in NAMES}
    result["UNSUPPORTED_DLC_IMAGE_FOR_SM_PARALLELISM"] = Framework.UNSUPPORTED_DLC_IMAGE_FOR_SM_PARALLELISM
    result["HIGHEST_LEGACY_MODE_ONLY_VERSION"] = str(TensorFlow._HIGHEST_LEGACY_MODE_ONLY_VERSION)
    return result
