"""The block `spec.sagemaker` of a job."""

from collections.abc import Iterator

from muster.api.sagemaker_spec import SageMaker
from muster.api.spec import Spec


def block_of(spec: Spec) -> SageMaker:
    """Return the block, or its defaults if the job leaves it out."""
    return spec.sagemaker or SageMaker()


def sagemaker_blocks(spec: Spec) -> Iterator[SageMaker]:
    """Yield the block of a job with backend: SageMaker; nothing for other backends."""
    if spec.backend == "SageMaker" and spec.sagemaker is not None:
        yield spec.sagemaker
