"""The job's block for Amazon SageMaker, where SageMaker is to run it."""

from collections.abc import Iterator

from muster.api.sagemaker_spec import SageMaker
from muster.api.spec import Spec


def sagemaker_blocks(spec: Spec) -> Iterator[SageMaker]:
    """The block, once; nothing for a job of another backend."""
    if spec.backend == "SageMaker" and spec.sagemaker is not None:
        yield spec.sagemaker
