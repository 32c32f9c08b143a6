"""Every training image of the SageMaker SDK, and every combination that it refuses, compared with the SDK itself."""

import json
from collections import Counter

import pytest

from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.images import ImageRequest, NoSuchImage, select_training_image
from muster_dev import image_facts as refresh
from muster_dev import sagemaker_sdk
from muster_dev.paths import ROOT

Row = tuple[ImageRequest, str | None]
"""A combination, and the SDK's image; None if the SDK refuses it."""


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    lines = sagemaker_sdk.run_script(ROOT / "tests" / "sagemaker_sdk" / "image_rows.py", "").splitlines()
    return [(ImageRequest(**asked), image) for asked, image in map(json.loads, lines)]


# The SDK is asked for 10,000 images. They change with the lock alone, and then the facts below differ.
@pytest.mark.long
def test_each_image_is_the_one_that_the_sdk_takes(rows: list[Row]) -> None:
    different = [(wanted, image, ours) for wanted, image in rows if (ours := our_image(wanted)) != image]
    assert different == []


@pytest.mark.long
def test_the_sdk_was_asked_for_all_that_it_has(rows: list[Row]) -> None:
    images = [(wanted, image) for wanted, image in rows if image is not None]
    assert len({image for _, image in images}) > 10_000
    assert len({wanted.region for wanted, _ in images}) == sum(
        len(regions) for regions in load_image_facts().domains.values()
    )
    result = Counter(wanted.framework for wanted, _ in images)
    assert result.keys() == {"PyTorch", "TensorFlow", "HuggingFace"}
    assert {wanted.library for wanted, _ in images} == {"None", "SMDistributed", "ModelParallelV2"}
    assert len({wanted.instance_type for wanted, _ in images}) > 40
    assert any(wanted.instance_type.startswith("ml.trn") for wanted, _ in images)


def test_the_facts_are_those_of_the_locked_sdk() -> None:
    current = refresh.format_json(refresh.build_document(sagemaker_sdk.install_sdk()))
    assert refresh.FILE.read_text(encoding="utf-8") == current, "run `make image-facts`"


def our_image(wanted: ImageRequest) -> str | None:
    try:
        return select_training_image(wanted, load_image_facts())
    except NoSuchImage:
        return None
