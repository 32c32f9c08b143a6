"""`make image-facts`: extracts the SageMaker SDK's tables of training images into muster's JSON file.

The file contains only data that muster uses: training with PyTorch, TensorFlow and Hugging Face, and the images that
evaluate rules. The SDK is that of requirements/sagemaker-sdk.txt. The program reads its tables without running it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muster_dev import sagemaker_sdk
from muster_dev.paths import ROOT

FILE = ROOT / "operator/muster/render/sagemaker/image_facts.json"

CATALOGUES = {
    "pytorch": "pytorch",
    "pytorch_neuron": "pytorch-neuron",
    "pytorch_model_parallel": "pytorch-smp",
    "tensorflow": "tensorflow",
}
"""The SDK's names of catalogues, by muster's names."""

EVALUATORS = {"debugger": "debugger", "detailed_profiler": "detailed-profiler"}
"""The SDK's names of images that evaluate the rules of SageMaker Debugger, by muster's names."""

HUGGING_FACE_SYSTEM = {"gpu": "cu110-ubuntu18.04"}
"""The suffix for images that have none in the SDK's table (image_uris.get_training_image_uri)."""

ONE_LINE_DEPTH = 3  # deeper levels are on one line, so that each version has one line


def main(_: Sequence[str]) -> int:
    """Write the file."""
    text = format_json(build_document(sagemaker_sdk.install_sdk()))
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}: {len(text)} bytes, of {sagemaker_sdk.read_sdk_version()}")
    return 0


def build_document(sdk: Path) -> dict[str, Any]:
    """Build the document from the tables of the SDK in its installation folder."""
    registries: dict[str, dict[str, list[str]]] = {}
    result = {
        name: build_catalogue(read_training_table(sdk, sdk_name), registries) for name, sdk_name in CATALOGUES.items()
    }
    hugging_face = read_training_table(sdk, "huggingface")
    by_version = {
        version: build_catalogue({**hugging_face, **bases, "versions": add_system(bases)}, registries)
        for version, bases in hugging_face["versions"].items()
    }
    evaluators = {name: read_evaluator(sdk, sdk_name, registries) for name, sdk_name in EVALUATORS.items()}
    regions = sorted({region for accounts in registries.values() for group in accounts.values() for region in group})
    return {
        "source": sagemaker_sdk.read_sdk_version(),
        "domains": group_regions(sdk, regions),
        "registries": registries,
        **result,
        **evaluators,
        "transformers_aliases": hugging_face["version_aliases"],
        "hugging_face": by_version,
    }


def read_training_table(sdk: Path, name: str) -> dict[str, Any]:
    """Read a table of training images from the SDK."""
    text = (sdk / "sagemaker" / "image_uri_config" / f"{name}.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)["training"]
    return table


def read_evaluator(sdk: Path, name: str, registries: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """Read the table of an image without versions, as an `Evaluator`."""
    text = (sdk / "sagemaker" / "image_uri_config" / f"{name}.json").read_text(encoding="utf-8")
    entry = json.loads(text)["versions"]["latest"]
    return {"repository": entry["repository"], "registries": find_registry_set(entry["registries"], registries)}


def add_system(bases: Mapping[str, Any]) -> dict[str, Any]:
    """Add the suffix of the tag to each framework version of a version of transformers."""
    return {
        base: {"container_version": HUGGING_FACE_SYSTEM, **images}
        for base, images in bases.items()
        if base != "version_aliases"
    }


def build_catalogue(table: Mapping[str, Any], registries: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """Convert a table to a `Catalogue`. Adds the table's registries to `registries`."""
    versions = {
        version: [build_entry(entry, pythons, registries) for pythons, entry in split_by_python(images)]
        for version, images in table["versions"].items()
    }
    return {"processors": table["processors"], "aliases": table["version_aliases"], "versions": versions}


def split_by_python(images: Mapping[str, Any]) -> list[tuple[list[str], Mapping[str, Any]]]:
    """Return a version's images as (Python versions, image): one entry for all Pythons, or one for each."""
    if "repository" in images:
        return [(images["py_versions"], images)]
    return [([python], entry) for python, entry in images.items()]


def build_entry(
    entry: Mapping[str, Any], pythons: list[str], registries: dict[str, dict[str, list[str]]]
) -> dict[str, Any]:
    """Convert an entry to a `Build`."""
    # Images for Trainium have the version of the Neuron SDK. The SageMaker SDK takes the maximum of the strings.
    system = [max(entry["sdk_versions"])] if "sdk_versions" in entry else []
    system += entry.get("container_version", {}).values()
    result = {
        "pythons": pythons,
        "repository": entry["repository"],
        "registries": find_registry_set(entry["registries"], registries),
    }
    return {**result, "system": "-".join(system)} if system else result


def find_registry_set(accounts: Mapping[str, str], registries: dict[str, dict[str, list[str]]]) -> str:
    """Return the name of a set of registries. Adds the set if it is new."""
    grouped: dict[str, list[str]] = {}
    for region, account in sorted(accounts.items()):
        grouped.setdefault(account, []).append(region)
    for name, existing in registries.items():
        if existing == grouped:
            return name
    name = f"set{len(registries) + 1}"
    registries[name] = grouped
    return name


def group_regions(sdk: Path, regions: Sequence[str]) -> dict[str, list[str]]:
    """Group the regions by the DNS domain of their AWS partition, from botocore."""
    partitions = json.loads((sdk / "botocore" / "data" / "endpoints.json").read_text(encoding="utf-8"))["partitions"]
    result: dict[str, list[str]] = {}
    for partition in partitions:
        matching = [region for region in regions if re.match(partition["regionRegex"], region)]
        if matching:
            result.setdefault(partition["dnsSuffix"], []).extend(matching)
    return result


def format_json(document: object, depth: int = 0) -> str:
    """Format JSON for readable diffs: one line per entry at depth `ONE_LINE_DEPTH`."""
    if (
        not isinstance(document, dict)
        or depth == ONE_LINE_DEPTH
        or all(isinstance(item, str) for item in document.values())
    ):
        return json.dumps(document) + ("" if depth else "\n")
    indent = " " * (depth + 1)
    lines = [f"{indent}{json.dumps(key)}: {format_json(value, depth + 1)}" for key, value in document.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent[1:]}}}" + ("" if depth else "\n")
