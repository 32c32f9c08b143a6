"""The distributions of `spec.sagemaker.distribution` by their names."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from muster.api.document import Path
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.spec import SageMaker

DISTRIBUTION: Path = ("sagemaker", "distribution")

PLACES = ("spec.sagemaker.distribution",)

FIELDS = {
    "torchDistributed": "torch_distributed",
    "pytorchDdp": "pytorch_ddp",
    "dataParallel": "data_parallel",
    "modelParallel": "model_parallel",
    "mpi": "mpi",
    "parameterServer": "parameter_server",
    "multiWorkerMirrored": "multi_worker_mirrored",
}


def distributions(spec: Spec) -> Iterator[tuple[SageMaker, Distribution]]:
    """Yield the block and its distribution if the job has both."""
    block = spec.sagemaker
    if block is not None and block.distribution is not None:
        yield block, block.distribution


def ways(distribution: Distribution) -> list[str]:
    """The names of the distributions that are set, enabled or not."""
    return [name for name, field in FIELDS.items() if getattr(distribution, field) is not None]


def is_on(distribution: Distribution, way: str) -> bool:
    """Whether the distribution of that name is set and enabled."""
    switch = getattr(distribution, FIELDS[way])
    return switch is not None and bool(switch.enabled)


def effective_ways(estimator: str, said: AbstractSet[str], on: AbstractSet[str]) -> AbstractSet[str]:
    """The names in `said` that the SDK's estimator passes to the toolkit; `on` are the enabled ones of them.

    It silently ignores the others (pytorch/, tensorflow/ and huggingface/estimator.py, hyperparameters).
    """
    if estimator == "TensorFlow":
        return said - {"torchDistributed", "pytorchDdp"}
    if estimator == "HuggingFace":
        if "pytorchDdp" in on:
            return {"pytorchDdp"}
        return {"torchDistributed"} if "torchDistributed" in on and "pytorchDdp" not in said else said
    has_parallel = bool(said & {"dataParallel", "modelParallel", "pytorchDdp"})
    return {"torchDistributed"} if "torchDistributed" in on and not has_parallel else said


def trained_by(block: SageMaker) -> tuple[str, str, str | None]:
    """The estimator's name, the framework that trains, and its version."""
    framework = block.framework
    if framework is None:
        return "", "", None
    if framework.name != "HuggingFace":
        return framework.name, framework.name, framework.version
    if framework.tensorflow_version is not None:
        return framework.name, "TensorFlow", framework.tensorflow_version
    return framework.name, "PyTorch", framework.pytorch_version
