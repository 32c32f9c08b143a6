"""`make image-facts`: what the SageMaker SDK knows of training images, as the JSON file that comes with muster.

Only what muster asks for is kept: training with PyTorch, TensorFlow and Hugging Face, and what evaluates rules. The SDK
is the one that requirements/sagemaker-sdk.txt names; nothing of it runs here, its own tables are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muster_dev import sagemaker_sdk
from muster_dev.places import ROOT

FILE = ROOT / "operator/muster/render/sagemaker/image_facts.json"

CATALOGUES = {
    "pytorch": "pytorch",
    "pytorch_neuron": "pytorch-neuron",
    "pytorch_model_parallel": "pytorch-smp",
    "tensorflow": "tensorflow",
}
"""Our names of catalogues, and the SDK's."""

EVALUATORS = {"debugger": "debugger", "detailed_profiler": "detailed-profiler"}
"""The same of images that evaluate the rules of SageMaker Debugger."""

HUGGING_FACE_SYSTEM = {"gpu": "cu110-ubuntu18.04"}
"""Where the SDK's table has none: image_uris.get_training_image_uri."""

DEPTH = 3  # below it a document is written on one line, which makes one line a version


def main(_: Sequence[str]) -> int:
    """Write the file."""
    text = rendered(facts(sagemaker_sdk.folder()))
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}: {len(text)} bytes, of {sagemaker_sdk.version()}")
    return 0


def facts(sdk: Path) -> dict[str, Any]:
    """The document, from the SDK's tables in the folder that it is installed in."""
    registries: dict[str, dict[str, list[str]]] = {}
    result = {name: catalogue(training(sdk, theirs), registries) for name, theirs in CATALOGUES.items()}
    hugging_face = training(sdk, "huggingface")
    by_version = {
        version: catalogue({**hugging_face, **bases, "versions": with_system(bases)}, registries)
        for version, bases in hugging_face["versions"].items()
    }
    evaluators = {name: evaluator(sdk, theirs, registries) for name, theirs in EVALUATORS.items()}
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
    """One of the SDK's tables."""
    text = (sdk / "sagemaker" / "image_uri_config" / f"{name}.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)["training"]
    return table


def evaluator(sdk: Path, name: str, registries: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """A table of one image that has no versions, as an `Evaluator`."""
    text = (sdk / "sagemaker" / "image_uri_config" / f"{name}.json").read_text(encoding="utf-8")
    entry = json.loads(text)["versions"]["latest"]
    return {"repository": entry["repository"], "registries": registered(entry["registries"], registries)}


def with_system(bases: Mapping[str, Any]) -> dict[str, Any]:
    """The versions beneath one of transformers, each with the end of its tag."""
    return {
        base: {"container_version": HUGGING_FACE_SYSTEM, **images}
        for base, images in bases.items()
        if base != "version_aliases"
    }


def catalogue(table: Mapping[str, Any], registries: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """A table as a `Catalogue`; the registries that it names are added to `registries`."""
    versions = {
        version: [build(entry, pythons, registries) for pythons, entry in entries(images)]
        for version, images in table["versions"].items()
    }
    return {"processors": table["processors"], "aliases": table["version_aliases"], "versions": versions}


def entries(images: Mapping[str, Any]) -> list[tuple[list[str], Mapping[str, Any]]]:
    """A version's images by their Pythons: one entry for all of them, or one for each."""
    if "repository" in images:
        return [(images["py_versions"], images)]
    return [([python], entry) for python, entry in images.items()]


def build(entry: Mapping[str, Any], pythons: list[str], registries: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """An entry as a `Build`."""
    # Trainium's images name the version of the Neuron SDK; the SDK takes the last of them as text.
    system = [max(entry["sdk_versions"])] if "sdk_versions" in entry else []
    system += entry.get("container_version", {}).values()
    made = {
        "pythons": pythons,
        "repository": entry["repository"],
        "registries": registered(entry["registries"], registries),
    }
    return {**made, "system": "-".join(system)} if system else made


def registered(accounts: Mapping[str, str], registries: dict[str, dict[str, list[str]]]) -> str:
    """The name of a set of registries, which is added where it is new."""
    grouped: dict[str, list[str]] = {}
    for region, account in sorted(accounts.items()):
        grouped.setdefault(account, []).append(region)
    for name, known in registries.items():
        if known == grouped:
            return name
    name = f"set{len(registries) + 1}"
    registries[name] = grouped
    return name


def domains(sdk: Path, regions: Sequence[str]) -> dict[str, list[str]]:
    """The regions by the DNS domain of the partition of AWS that they are in, as botocore has them."""
    partitions = json.loads((sdk / "botocore" / "data" / "endpoints.json").read_text(encoding="utf-8"))["partitions"]
    result: dict[str, list[str]] = {}
    for partition in partitions:
        matching = [region for region in regions if re.match(partition["regionRegex"], region)]
        if matching:
            result.setdefault(partition["dnsSuffix"], []).extend(matching)
    return result


def rendered(document: object, depth: int = 0) -> str:
    """JSON that changes line by line: spread out at the top, one line for each thing below `DEPTH`."""
    if not isinstance(document, dict) or depth == DEPTH or all(isinstance(item, str) for item in document.values()):
        return json.dumps(document) + ("" if depth else "\n")
    indent = " " * (depth + 1)
    lines = [f"{indent}{json.dumps(key)}: {rendered(value, depth + 1)}" for key, value in document.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent[1:]}}}" + ("" if depth else "\n")
