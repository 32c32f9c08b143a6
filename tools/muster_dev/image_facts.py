"""`make image-facts`: extracts the SageMaker SDK's tables of training images into muster's JSON file.

The file contains only what muster uses: training with PyTorch, TensorFlow and Hugging Face, and the images that
evaluate rules. The SDK is the one in requirements/sagemaker-sdk.txt. This reads its tables without running it.
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
"""muster's names of catalogues, and the SDK's."""

EVALUATORS = {"debugger": "debugger", "detailed_profiler": "detailed-profiler"}
"""The same for images that evaluate the rules of SageMaker Debugger."""

HUGGING_FACE_SYSTEM = {"gpu": "cu110-ubuntu18.04"}
"""The value for images without one in the SDK's table: image_uris.get_training_image_uri."""

DEPTH = 3  # write deeper levels on one line: one line per version


def main(_: Sequence[str]) -> int:
    """Write the file."""
    text = rendered(facts(sagemaker_sdk.folder()))
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}: {len(text)} bytes, of {sagemaker_sdk.version()}")
    return 0


def facts(sdk: Path) -> dict[str, Any]:
    """The document, from the tables of the SDK in its installation folder."""
    registries: dict[str, dict[str, list[str]]] = {}
    result = {name: catalogue(training(sdk, sdk_name), registries) for name, sdk_name in CATALOGUES.items()}
    hugging_face = training(sdk, "huggingface")
    by_version = {
        version: catalogue({**hugging_face, **bases, "versions": with_system(bases)}, registries)
        for version, bases in hugging_face["versions"].items()
    }
    evaluators = {name: evaluator(sdk, sdk_name, registries) for name, sdk_name in EVALUATORS.items()}
    regions = sorted({region for accounts in registries.values() for group in accounts.values() for region in group})
    return {
        "source": sagemaker_sdk.version(),
        "domains": domains(sdk, regions),
        "registries": registries,
        **result,
        **evaluators,
        "transformers_aliases": hugging_face["version_aliases"],
        "hugging_face": by_version,
    }


def training(sdk: Path, name: str) -> dict[str, Any]:
    """A table of training images of the SDK."""
    text = (sdk / "sagemaker" / "image_uri_config" / f"{name}.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)["training"]
    return table


def evaluator(sdk: Path, name: str, registries: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """The table of an image without versions, as an `Evaluator`."""
    text = (sdk / "sagemaker" / "image_uri_config" / f"{name}.json").read_text(encoding="utf-8")
    entry = json.loads(text)["versions"]["latest"]
    return {"repository": entry["repository"], "registries": registered(entry["registries"], registries)}


def with_system(bases: Mapping[str, Any]) -> dict[str, Any]:
    """The framework versions below a version of transformers, each with the suffix of its tag."""
    return {
        base: {"container_version": HUGGING_FACE_SYSTEM, **images}
        for base, images in bases.items()
        if base != "version_aliases"
    }


def catalogue(table: Mapping[str, Any], registries: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """A table as a `Catalogue`. Adds the table's registries to `registries`."""
    versions = {
        version: [build(entry, pythons, registries) for pythons, entry in entries(images)]
        for version, images in table["versions"].items()
    }
    return {"processors": table["processors"], "aliases": table["version_aliases"], "versions": versions}


def entries(images: Mapping[str, Any]) -> list[tuple[list[str], Mapping[str, Any]]]:
    """A version's images by Python version: one entry for all of them, or one for each."""
    if "repository" in images:
        return [(images["py_versions"], images)]
    return [([python], entry) for python, entry in images.items()]


def build(entry: Mapping[str, Any], pythons: list[str], registries: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """An entry as a `Build`."""
    # Trainium's images have the version of the Neuron SDK; the SDK takes the maximum of the strings.
    system = [max(entry["sdk_versions"])] if "sdk_versions" in entry else []
    system += entry.get("container_version", {}).values()
    result = {
        "pythons": pythons,
        "repository": entry["repository"],
        "registries": registered(entry["registries"], registries),
    }
    return {**result, "system": "-".join(system)} if system else result


def registered(accounts: Mapping[str, str], registries: dict[str, dict[str, list[str]]]) -> str:
    """The name of a set of registries; adds a new set."""
    grouped: dict[str, list[str]] = {}
    for region, account in sorted(accounts.items()):
        grouped.setdefault(account, []).append(region)
    for name, existing in registries.items():
        if existing == grouped:
            return name
    name = f"set{len(registries) + 1}"
    registries[name] = grouped
    return name


def domains(sdk: Path, regions: Sequence[str]) -> dict[str, list[str]]:
    """The regions by the DNS domain of their AWS partition, from botocore."""
    partitions = json.loads((sdk / "botocore" / "data" / "endpoints.json").read_text(encoding="utf-8"))["partitions"]
    result: dict[str, list[str]] = {}
    for partition in partitions:
        matching = [region for region in regions if re.match(partition["regionRegex"], region)]
        if matching:
            result.setdefault(partition["dnsSuffix"], []).extend(matching)
    return result


def rendered(document: object, depth: int = 0) -> str:
    """JSON for readable diffs: one line per entry below `DEPTH`."""
    if not isinstance(document, dict) or depth == DEPTH or all(isinstance(item, str) for item in document.values()):
        return json.dumps(document) + ("" if depth else "\n")
    indent = " " * (depth + 1)
    lines = [f"{indent}{json.dumps(key)}: {rendered(value, depth + 1)}" for key, value in document.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent[1:]}}}" + ("" if depth else "\n")
