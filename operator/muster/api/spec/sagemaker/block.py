"""The job's block for Amazon SageMaker."""

from collections.abc import Iterator

from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.spec import SageMaker


def block_of(spec: Spec) -> SageMaker:
    """The block, or its defaults where the job leaves it out."""
    return spec.sagemaker or SageMaker()


def sagemaker_blocks(spec: Spec) -> Iterator[SageMaker]:
    """The block, once, where SageMaker is to run the job; nothing for a job of another backend."""
    if spec.backend == "SageMaker" and spec.sagemaker is not None:
        yield spec.sagemaker
