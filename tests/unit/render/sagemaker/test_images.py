"""Images by framework, version, region and instance type; tests/integration/sagemaker compares them with the SDK."""

from dataclasses import replace

import pytest

from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.images import (
    FieldName,
    ImageRequest,
    NoSuchImage,
    choose_image_instance_type,
    get_processor,
    select_training_image,
)

PYTORCH = ImageRequest("PyTorch", "2.0.1", "us-west-2", "ml.p4d.24xlarge")
TRAINIUM = replace(PYTORCH, instance_type="ml.trn1.32xlarge")
TENSORFLOW = ImageRequest("TensorFlow", "2.3.0", "us-west-2", "ml.c5.2xlarge")
HUGGING_FACE = ImageRequest("HuggingFace", "4.28.1", "us-west-2", "ml.g5.2xlarge", pytorch="2.0.0")
SHARDED = replace(PYTORCH, library="ModelParallelV2")

OREGON = "763104351884.dkr.ecr.us-west-2.amazonaws.com"
BEIJING = "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn"


@pytest.mark.parametrize(
    ("asked", "image"),
    [
        (replace(PYTORCH, python="py310"), f"{OREGON}/pytorch-training:2.0.1-gpu-py310"),
        (PYTORCH, f"{OREGON}/pytorch-training:2.0.1-gpu-py310"),
        (replace(PYTORCH, region="cn-north-1"), f"{BEIJING}/pytorch-training:2.0.1-gpu-py310"),
        # A short version stays short: there is such a tag.
        (replace(PYTORCH, version="2.0", instance_type="ml.c5.large"), f"{OREGON}/pytorch-training:2.0-cpu-py310"),
        # For any version on Trainium: AWS has newer images, the SDK only this one.
        (TRAINIUM, f"{OREGON}/pytorch-training-neuron:1.11.0-neuron-py38-sdk2.4.0-ubuntu20.04"),
        (TENSORFLOW, f"{OREGON}/tensorflow-training:2.3.0-cpu-py37"),
        (
            replace(TENSORFLOW, version="2.3.1", instance_type="ml.p3.16xlarge", library="SMDistributed"),
            f"{OREGON}/tensorflow-training:2.3.1-gpu-py37-cu110-ubuntu18.04",
        ),
        (
            HUGGING_FACE,
            f"{OREGON}/huggingface-pytorch-training:2.0.0-transformers4.28.1-gpu-py310-cu118-ubuntu20.04",
        ),
        (
            replace(HUGGING_FACE, version="4.28", pytorch="2.0"),
            f"{OREGON}/huggingface-pytorch-training:2.0-transformers4.28-gpu-py310-cu118-ubuntu20.04",
        ),
        (
            replace(HUGGING_FACE, version="4.4.2", pytorch="", tensorflow="2.4.1"),
            f"{OREGON}/huggingface-tensorflow-training:2.4.1-transformers4.4.2-gpu-py37-cu110-ubuntu18.04",
        ),
        (SHARDED, "658645717510.dkr.ecr.us-west-2.amazonaws.com/smdistributed-modelparallel:2.0.1-gpu-py310-cu118"),
        (
            replace(SHARDED, instance_type="ml.p5.48xlarge"),
            "658645717510.dkr.ecr.us-west-2.amazonaws.com/smdistributed-modelparallel:2.0.1-gpu-py310-cu121",
        ),
    ],
)
def test_the_image(asked: ImageRequest, image: str) -> None:
    assert select_training_image(asked, load_image_facts()) == image


@pytest.mark.parametrize(
    ("asked", "part", "words"),
    [
        (
            replace(PYTORCH, version="2.0.2"),
            "version",
            "'2.0.2'; AWS has no such image for training: choose one of 0.4.0, 1",
        ),
        (
            replace(PYTORCH, python="py39"),
            "pythonVersion",
            "'py39'; AWS has no such image for training: choose one of py310",
        ),
        (
            replace(PYTORCH, version="1.6.0"),
            "pythonVersion",
            "none; AWS has several images for training: choose one of py3, py36",
        ),
        (
            replace(TRAINIUM, python="py310"),
            "pythonVersion",
            "'py310'; AWS has no such image for training: choose one of py38",
        ),
        (
            replace(PYTORCH, region="eu-west-9"),
            "region",
            "'eu-west-9'; AWS has no such image for training: choose one of af",
        ),
        (
            replace(PYTORCH, instance_type="p4d.24xlarge"),
            "instanceType",
            "'p4d.24xlarge'; an instance type of SageMaker is expected",
        ),
        (
            replace(PYTORCH, instance_type="ml.inf2.xlarge"),
            "instanceType",
            "ml.inf2.xlarge; AWS has these images for instances with CPUs and GPUs only",
        ),
        (
            replace(PYTORCH, instance_type="ml.p2.xlarge"),
            "instanceType",
            "ml.p2.xlarge; from PyTorch 1.13 on, p2 instances are not supported",
        ),
        (
            replace(HUGGING_FACE, instance_type="ml.c5.large"),
            "instanceType",
            "ml.c5.large; AWS has these images for instances with GPUs only",
        ),
        (replace(HUGGING_FACE, version="4.29.0"), "version", "'4.29.0'; AWS has no such image for training"),
        (replace(HUGGING_FACE, version="4.28"), "version", "4.28 and 2.0.0; write both in full"),
        (
            replace(HUGGING_FACE, pytorch=""),
            "pytorchVersion",
            "neither; set either pytorchVersion or tensorflowVersion",
        ),
        (replace(HUGGING_FACE, tensorflow="2.4.1"), "pytorchVersion", "both; set"),
        (
            replace(HUGGING_FACE, pytorch="2.0.1"),
            "pytorchVersion",
            "'2.0.1'; AWS has no such image for training: choose one of 2.0.0",
        ),
        (
            replace(HUGGING_FACE, instance_type="ml.trn1.2xlarge"),
            "name",
            "HuggingFace on ml.trn1.2xlarge; for Trainium, AWS has only PyTorch images",
        ),
        (
            replace(TRAINIUM, library="SMDistributed"),
            "name",
            "PyTorch with smdistributed or modelParallel on ml.trn1.32xlarge",
        ),
        (replace(TENSORFLOW, library="ModelParallelV2"), "name", "TensorFlow with modelParallel"),
    ],
)
def test_what_there_is_no_image_for(asked: ImageRequest, part: FieldName, words: str) -> None:
    with pytest.raises(NoSuchImage) as refused:
        select_training_image(asked, load_image_facts())
    assert refused.value.field == part
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("types", "deciding"),
    [
        (["ml.c5.9xlarge", "ml.p4d.24xlarge"], "ml.p4d.24xlarge"),
        (["ml.g5.xlarge", "ml.p4d.24xlarge"], "ml.g5.xlarge"),
        (["ml.c5.9xlarge", "ml.trn1.2xlarge"], "ml.c5.9xlarge"),
    ],
)
def test_the_instance_group_that_the_image_is_for(types: list[str], deciding: str) -> None:
    assert choose_image_instance_type(types) == deciding


@pytest.mark.parametrize(
    ("name", "processor"),
    [
        ("ml.m7i-flex.large", "cpu"),
        ("ml.p6-b200.48xlarge", "gpu"),
        ("ml.trn1n.32xlarge", "trn"),
        ("ml.inf1.xlarge", "inf"),
    ],
)
def test_what_an_instance_type_computes_with(name: str, processor: str) -> None:
    assert get_processor(name) == processor
