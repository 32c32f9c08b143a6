"""Access to the block `spec.sagemaker` of a job."""

from collections.abc import Iterator

from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.support import select_debugger_conflict


def get_sagemaker_block(spec: Spec) -> SageMaker:
    """Return `spec.sagemaker`, or its defaults if the job has none."""
    return spec.sagemaker or SageMaker()


def list_sagemaker_blocks(spec: Spec) -> Iterator[SageMaker]:
    """Yield the block of a job with backend: SageMaker; nothing for other backends."""
    if spec.backend == "SageMaker" and spec.sagemaker is not None:
        yield spec.sagemaker


def find_debugger_conflict(spec: Spec) -> str | None:
    """Return the field that is incompatible with SageMaker Debugger; None if there is none."""
    block = get_sagemaker_block(spec)
    server = block.distribution.parameter_server if block.distribution is not None else None
    keeps_checkpoints = spec.checkpoint is not None and spec.checkpoint.s3 is not None
    return select_debugger_conflict(
        block.framework.name if block.framework is not None else "",
        has_parameter_server=server is not None and server.enabled,
        has_checkpoint_path=keeps_checkpoints and block.checkpoint_path is not None,
    )
