"""Valid estimators for each distribution: chance produces none for some of these pairs."""

from muster.api.document import JSON
from sagemaker_sdk.estimator_cases import (
    HUGGING_FACE,
    MPI,
    OFF,
    ON,
    PYTORCH_DISTRIBUTIONS,
    TENSORFLOW_DISTRIBUTIONS,
    Case,
    Kwargs,
)

UNKNOWN: tuple[Kwargs, ...] = (
    {"pytorchddp": {"enable": True}},
    {"torch_distributed": {"enable": True}},
    {"torchdistributed": ON},
    {"smdistributed": {"dataparallel": {"enable": True}}},
    {"mpi": {"enabled": True, "process_per_host": 2}},
)
"""Words that the SDK ignores."""

ON_TRAINIUM: tuple[Kwargs, ...] = (
    {"torch_distributed": ON},
    {"torch_distributed": OFF},
    {"mpi": MPI},
    {"smdistributed": {"dataparallel": ON}},
)

_GPUS: Kwargs = {"instance_type": "ml.p4d.24xlarge", "instance_count": 2}
_TRAINIUM: Kwargs = {"instance_type": "ml.trn1.32xlarge", "instance_count": 2}

_ROWS: tuple[tuple[str, Kwargs, tuple[Kwargs, ...]], ...] = (
    ("PyTorch", {"framework_version": "2.0.1", "py_version": "py310", **_GPUS}, (*PYTORCH_DISTRIBUTIONS, *UNKNOWN)),
    ("PyTorch", {"framework_version": "1.13.1", "py_version": "py39", **_GPUS}, PYTORCH_DISTRIBUTIONS),
    ("PyTorch", {"framework_version": "1.13.1", "py_version": "py38", **_TRAINIUM}, ON_TRAINIUM),
    ("HuggingFace", {**HUGGING_FACE[0], **_GPUS}, (*PYTORCH_DISTRIBUTIONS, *UNKNOWN)),
    ("TensorFlow", {"framework_version": "2.11.0", "py_version": "py39", **_GPUS}, TENSORFLOW_DISTRIBUTIONS),
)


def fitting_cases() -> list[Case]:
    """Return a case for each estimator and distribution."""
    pairs = [(estimator, kwargs, way) for estimator, kwargs, ways in _ROWS for way in ways]
    return [
        Case(f"fitting-{number}", "us-west-2", estimator, _asking(kwargs, way))
        for number, (estimator, kwargs, way) in enumerate(pairs)
    ]


def _asking(kwargs: Kwargs, distribution: JSON) -> Kwargs:
    return {**kwargs, "distribution": distribution}
