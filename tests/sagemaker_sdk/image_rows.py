"""Print the SageMaker SDK's images, one JSON list per line. It runs as a program, with the SDK and without muster.

Each line has the fields of muster's `Wanted`, and the SDK's answer: an image, or null if the SDK refuses.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import botocore.session
from sagemaker import image_uris, utils

ONE_REGION = "us-west-2"
ONE_OF_EACH_KIND = ("ml.c5.2xlarge", "ml.g5.2xlarge", "ml.trn1.32xlarge")
WITH_LIBRARIES = ("ml.c5.2xlarge", "ml.p3.16xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge")
TABLES = {"PyTorch": ("pytorch", "pytorch-smp", "pytorch-neuron"), "TensorFlow": ("tensorflow",)}
LIBRARIES: dict[str, Any] = {
    "None": None,
    "SMDistributed": {"smdistributed": {"dataparallel": {"enabled": True}}},
    "ModelParallelV2": {"torch_distributed": {"enabled": True}, "smdistributed": {"modelparallel": {"enabled": True}}},
}

# The SDK reads the same files again for each image.
image_uris.config_for_framework = lru_cache(image_uris.config_for_framework)
utils._botocore_resolver = lru_cache(utils._botocore_resolver)


def main() -> None:
    with Path(sys.argv[1]).open("w", encoding="utf-8") as answers:
        answers.writelines(json.dumps([asked, answer(asked)]) + "\n" for asked in questions() if gets_that_far(asked))


def questions() -> Iterator[dict[str, str]]:
    """Yield all regions with one instance type of each kind; one region with all families, Pythons and libraries."""
    regions = sorted(set(everywhere("registries")))
    pythons = ["", *sorted(set(itertools.chain.from_iterable(everywhere("py_versions"))))]
    for asked, own in versions():
        places = [
            *itertools.product(regions, ONE_OF_EACH_KIND, own, ["None"]),
            *itertools.product([ONE_REGION], one_of_each_family(), own, ["None"]),
            *itertools.product([ONE_REGION], ONE_OF_EACH_KIND, pythons, ["None"]),
            *itertools.product([ONE_REGION], WITH_LIBRARIES, own, LIBRARIES),
        ]
        for region, instance_type, python, library in places:
            place = {"region": region, "instance_type": instance_type, "library": library}
            yield {**asked, **place, "python": python}


def versions() -> Iterator[tuple[dict[str, str], list[str]]]:
    """Each version of the SDK, also in its short form, with its Pythons."""
    for framework, name in [(framework, name) for framework, names in TABLES.items() for name in names]:
        for version, images in named(training(name)["versions"], training(name)["version_aliases"]):
            yield {"framework": framework, "version": version}, pythons_of(images)
    table = training("huggingface")
    for transformers, bases in named(table["versions"], table["version_aliases"]):
        own = {name: images for name, images in bases.items() if name != "version_aliases"}
        for base, images in named(own, bases["version_aliases"]):
            # The estimator refuses a short version together with a full one.
            if base.count(".") == transformers.count("."):
                name = "pytorch" if base.startswith("pytorch") else "tensorflow"
                beneath = {"version": transformers, name: base.removeprefix(name)}
                yield {"framework": "HuggingFace", **beneath}, pythons_of(images)


def named(full: dict[str, Any], short: dict[str, str]) -> Iterator[tuple[str, Any]]:
    yield from full.items()
    yield from ((name, full[full_name]) for name, full_name in short.items())


def pythons_of(images: dict[str, Any]) -> list[str]:
    result: list[str] = images.get("py_versions") or list(images)
    return result


def training(name: str) -> dict[str, Any]:
    table: dict[str, Any] = image_uris.config_for_framework(name)["training"]
    return table


def everywhere(key: str) -> Iterator[Any]:
    """Yield all values under a key in nested tables: the items of objects, and whole lists."""
    rest = [training(name) for name in ("pytorch", "pytorch-neuron", "pytorch-smp", "tensorflow", "huggingface")]
    while rest:
        for name, value in rest.pop().items():
            if name == key:
                yield from [value] if isinstance(value, list) else value
            elif isinstance(value, dict):
                rest.append(value)


@lru_cache
def one_of_each_family() -> list[str]:
    """Return an instance type of each family that trains."""
    model = botocore.session.get_session().get_service_model("sagemaker")
    types = model.shape_for("TrainingInstanceType").metadata["enum"]
    return list({name.split(".")[1]: name for name in types}.values())


def gets_that_far(asked: dict[str, str]) -> bool:
    """Whether the estimators get to the image: they refuse SageMaker's libraries on Trainium, and this one except for
    PyTorch.
    """
    library = asked["library"]
    of_another = library == "ModelParallelV2" and asked["framework"] == "TensorFlow"
    return library == "None" or not ("trn" in asked["instance_type"] or of_another)


def answer(asked: dict[str, str]) -> str | None:
    try:
        image: str = image_uris.get_training_image_uri(
            region=asked["region"],
            framework=asked["framework"].lower(),
            framework_version=asked["version"],
            pytorch_version=asked.get("pytorch"),
            tensorflow_version=asked.get("tensorflow"),
            py_version=asked["python"] or None,
            distribution=LIBRARIES[asked["library"]],
            instance_type=asked["instance_type"],
        )
    except ValueError:
        return None
    return image


if __name__ == "__main__":
    main()
