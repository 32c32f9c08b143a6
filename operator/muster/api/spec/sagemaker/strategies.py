"""The strategies in `spec.sagemaker.distribution`, by field name."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from muster.api.document import FieldPath
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.spec import SageMaker

DISTRIBUTION_PATH: FieldPath = ("sagemaker", "distribution")

SCHEMA_PATHS = ("spec.sagemaker.distribution",)

STRATEGY_FIELDS = {
    "torchDistributed": "torch_distributed",
    "pytorchDdp": "pytorch_ddp",
    "dataParallel": "data_parallel",
    "modelParallel": "model_parallel",
    "mpi": "mpi",
    "parameterServer": "parameter_server",
    "multiWorkerMirrored": "multi_worker_mirrored",
}


def list_distributions(spec: Spec) -> Iterator[tuple[SageMaker, Distribution]]:
    """Yield the job's `sagemaker` block and its distribution if both are set."""
    block = spec.sagemaker
    if block is not None and block.distribution is not None:
        yield block, block.distribution


def list_strategies(distribution: Distribution) -> list[str]:
    """Return the names of the strategies that are set, including disabled ones."""
    return [name for name, field in STRATEGY_FIELDS.items() if getattr(distribution, field) is not None]


def is_enabled(distribution: Distribution, strategy: str) -> bool:
    """Whether the strategy is set and enabled."""
    options = getattr(distribution, STRATEGY_FIELDS[strategy])
    return options is not None and bool(options.enabled)


def select_effective_strategies(
    estimator: str, configured: AbstractSet[str], enabled: AbstractSet[str]
) -> AbstractSet[str]:
    """Return the strategies in `configured` that the SDK's estimator passes to the toolkit.

    `enabled` is a subset of `configured`. The SDK silently ignores the other strategies (hyperparameters() in
    pytorch/, tensorflow/ and huggingface/estimator.py).
    """
    if estimator == "TensorFlow":
        return configured - {"torchDistributed", "pytorchDdp"}
    if estimator == "HuggingFace":
        if "pytorchDdp" in enabled:
            return {"pytorchDdp"}
        return {"torchDistributed"} if "torchDistributed" in enabled and "pytorchDdp" not in configured else configured
    has_parallel = bool(configured & {"dataParallel", "modelParallel", "pytorchDdp"})
    return {"torchDistributed"} if "torchDistributed" in enabled and not has_parallel else configured


def get_training_framework(block: SageMaker) -> tuple[str, str, str | None]:
    """Return the estimator's name, the framework that runs the training, and its version."""
    framework = block.framework
    if framework is None:
        return "", "", None
    if framework.name != "HuggingFace":
        return framework.name, framework.name, framework.version
    if framework.tensorflow_version is not None:
        return framework.name, "TensorFlow", framework.tensorflow_version
    return framework.name, "PyTorch", framework.pytorch_version
