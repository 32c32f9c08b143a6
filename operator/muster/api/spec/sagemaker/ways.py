"""The ways in which a job on SageMaker may start its ranks, by their names in `spec.sagemaker.distribution`."""

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
    """The block and its distribution, once, where the job has them."""
    block = spec.sagemaker
    if block is not None and block.distribution is not None:
        yield block, block.distribution


def ways(distribution: Distribution) -> list[str]:
    """The names of those that are set, on or off."""
    return [name for name, field in FIELDS.items() if getattr(distribution, field) is not None]


def is_on(distribution: Distribution, way: str) -> bool:
    """Whether the one of that name is set and on."""
    switch = getattr(distribution, FIELDS[way])
    return switch is not None and bool(switch.enabled)


def effective_ways(estimator: str, said: AbstractSet[str], on: AbstractSet[str]) -> AbstractSet[str]:
    """The ways that the SDK's estimator tells the toolkit, of those that are said, of which some are on.

    It passes over the others without a word (pytorch/, tensorflow/ and huggingface/estimator.py, hyperparameters).
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
    """The estimator's name, the framework that trains, and that one's version."""
    framework = block.framework
    if framework is None:
        return "", "", None
    if framework.name != "HuggingFace":
        return framework.name, framework.name, framework.version
    if framework.tensorflow_version is not None:
        return framework.name, "TensorFlow", framework.tensorflow_version
    return framework.name, "PyTorch", framework.pytorch_version
