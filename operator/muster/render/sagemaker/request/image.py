"""Choose the job's image: its own image, or the image of its framework. Pure."""

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.framework import Framework
from muster.api.spec.sagemaker.launch import choose_distribution
from muster.api.spec.sagemaker.spec import SageMaker
from muster.render.sagemaker.image_catalogue import ImageFacts
from muster.render.sagemaker.images import (
    ImageRequest,
    Library,
    NoSuchImage,
    choose_image_instance_type,
    select_training_image,
)


def choose_image(spec: Spec, region: str, facts: ImageFacts) -> str:
    """Return the image's URI. Raises `InvalidResource` if AWS has no such image."""
    block = get_sagemaker_block(spec)
    if spec.image is not None or block.framework is None:
        return spec.image or ""
    try:
        return select_training_image(_make_image_request(spec, block, block.framework, region), facts)
    except NoSuchImage as problem:
        path = _find_field_path(problem, block)
        raise InvalidResource((FieldProblem(path, f"found {problem}"),)) from None


def _make_image_request(spec: Spec, block: SageMaker, framework: Framework, region: str) -> ImageRequest:
    types = [group.instance_type for group in block.instance_groups]
    return ImageRequest(
        framework=framework.name,
        version=framework.version or "",
        region=region,
        instance_type=block.instance_type or choose_image_instance_type(types),
        python=framework.python_version or "",
        library=_choose_library(framework, choose_distribution(spec)),
        pytorch=framework.pytorch_version or "",
        tensorflow=framework.tensorflow_version or "",
    )


def _choose_library(framework: Framework, distribution: Distribution | None) -> Library:
    """Return the SageMaker library that the image must contain (image_uris.py, get_training_image_uri)."""
    if distribution is None:
        return "None"
    parallel = distribution.model_parallel
    if parallel is not None and parallel.enabled and distribution.torch_distributed is not None:
        return "ModelParallelV2"
    uses_ddp = distribution.pytorch_ddp is not None and framework.name == "PyTorch"
    return "SMDistributed" if parallel is not None or distribution.data_parallel is not None or uses_ddp else "None"


def _find_field_path(problem: NoSuchImage, block: SageMaker) -> str:
    if problem.field == "instanceType" and block.instance_type is None:
        return "spec.sagemaker.instanceGroups"
    is_block_field = problem.field in ("instanceType", "region")
    return f"spec.sagemaker.{problem.field}" if is_block_field else f"spec.sagemaker.framework.{problem.field}"
