"""The framework versions and instances that the SageMaker SDK supports for each distribution.

The lists are from sagemaker 2.257.7, fw_utils.py, and a test compares them with it. Each constant names its source.
"""

import re
from typing import Literal

DATA_PARALLEL_VERSIONS: dict[str, tuple[str, ...]] = {
    "TensorFlow": (
        *("2.3", "2.3.1", "2.3.2", "2.4", "2.4.1", "2.4.3", "2.5", "2.5.0", "2.5.1", "2.6", "2.6.0", "2.6.2"),
        *("2.6.3", "2.7", "2.7.1", "2.8", "2.8.0", "2.9", "2.9.1", "2.9.2", "2.10", "2.10.1", "2.11", "2.11.0"),
    ),
    "PyTorch": (
        *("1.6", "1.6.0", "1.7", "1.7.1", "1.8", "1.8.0", "1.8.1", "1.9", "1.9.0", "1.9.1", "1.10", "1.10.0"),
        *("1.10.2", "1.11", "1.11.0", "1.12", "1.12.0", "1.12.1", "1.13.1", "2.0.0", "2.0.1", "2.1.0", "2.1.2"),
        "2.2.0",
    ),
}
"""Source: SM_DATAPARALLEL_SUPPORTED_FRAMEWORK_VERSIONS."""

TORCH_DISTRIBUTED_ON_GPU = (
    *("1.13.1", "2.0.0", "2.0.1", "2.1.0", "2.1.2", "2.2.0", "2.3.0", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1"),
    "2.8.0",
)
"""Source: TORCH_DISTRIBUTED_GPU_SUPPORTED_FRAMEWORK_VERSIONS."""

TORCH_DISTRIBUTED_ON_TRAINIUM = ("1.11", "1.11.0", "1.12", "1.12.0", "1.12.1", "1.13.1", "2.0.0")
"""Source: TRAINIUM_SUPPORTED_TORCH_DISTRIBUTED_FRAMEWORK_VERSIONS."""

FIRST_MIRRORED_TENSORFLOW = (2, 9)
"""Source: estimator.py, _validate_mwms_config."""

LAST_TENSORFLOW_WITHOUT_SCRIPTS = (1, 10, 0)
"""Source: tensorflow/estimator.py, _HIGHEST_LEGACY_MODE_ONLY_VERSION."""

IMAGE_WITHOUT_PARALLEL_LIBRARIES = "2.0.1-gpu-py310-cu121"
"""Source: Framework.UNSUPPORTED_DLC_IMAGE_FOR_SM_PARALLELISM."""

P5_INSTANCE_TYPE = "p5.48xlarge"
"""On this type smdistributed works only with torchDistributed. Source: estimator.py, _distribution_configuration."""

REGIONS_WITHOUT_DEBUGGER = (
    *("us-iso-east-1", "us-isob-east-1", "ap-southeast-3", "ap-southeast-4", "eu-south-2", "me-central-1"),
    *("ap-south-2", "eu-central-2", "us-gov-east-1"),
)
"""Regions without Debugger and profiler. Source: DEBUGGER_UNSUPPORTED_REGIONS, PROFILER_UNSUPPORTED_REGIONS."""


def select_debugger_conflict(
    estimator: str, *, has_parameter_server: bool, has_checkpoint_path: bool
) -> Literal["parameterServer", "checkpointPath"] | None:
    """Return the field that SageMaker Debugger does not support (see _validate_and_set_debugger_configs)."""
    if estimator == "TensorFlow" and has_parameter_server:
        return "parameterServer"
    return "checkpointPath" if estimator in ("PyTorch", "TensorFlow") and has_checkpoint_path else None


_FAMILY = re.compile(r"ml[._]([a-z\d-]+)\.?\w*")


def has_gpus(instance_type: str) -> bool:
    """Whether the SDK assumes that the instance type has GPUs (_is_gpu_instance)."""
    return parse_instance_family(instance_type)[:1] in ("p", "g")


def is_trainium(instance_type: str) -> bool:
    """Whether the instance type has Trainium chips (_is_trainium_instance)."""
    return parse_instance_family(instance_type).startswith("trn")


def parse_version(version: str) -> tuple[int, ...]:
    """Return a version as a comparable tuple: (2, 0, 1)."""
    return tuple(int(part) for part in version.split("."))


def parse_instance_family(instance_type: str) -> str:
    """Return the family of an instance type: p4d for ml.p4d.24xlarge, "" for other text."""
    match = _FAMILY.fullmatch(instance_type)
    return "" if match is None else match.group(1)
