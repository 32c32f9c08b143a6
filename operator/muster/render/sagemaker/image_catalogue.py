"""The types of image_facts.json, which lists AWS' images for training. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter


@dataclass(frozen=True)
class Build:
    """The images of a framework version for some versions of Python, such as "py310".

    `registries` is a key of `ImageFacts.registries`. `system` is the end of the tag, such as
    "cu118-ubuntu20.04", or "".
    """

    pythons: tuple[str, ...]
    repository: str
    registries: str
    system: str = ""


@dataclass(frozen=True)
class Catalogue:
    """A framework's images: supported processors, aliases of versions, and builds by version."""

    processors: tuple[str, ...]
    aliases: Mapping[str, str]
    versions: Mapping[str, tuple[Build, ...]]


@dataclass(frozen=True)
class Evaluator:
    """The image that evaluates SageMaker's built-in rules."""

    repository: str
    registries: str


@dataclass(frozen=True)
class ImageFacts:
    """All facts about images.

    `source` is the origin of the facts. `domains` are the regions of each DNS domain of AWS. `registries`
    are the accounts that have images, with their regions, by the name of the registry. `hugging_face` contains the
    images for each version of transformers, by the version of PyTorch or TensorFlow, such as "pytorch2.0.0".
    """

    source: str
    domains: Mapping[str, tuple[str, ...]]
    registries: Mapping[str, Mapping[str, tuple[str, ...]]]
    pytorch: Catalogue
    pytorch_neuron: Catalogue
    pytorch_model_parallel: Catalogue
    tensorflow: Catalogue
    debugger: Evaluator
    detailed_profiler: Evaluator
    transformers_aliases: Mapping[str, str]
    hugging_face: Mapping[str, Catalogue]


def read_facts(text: str) -> ImageFacts:
    """Parse the facts from JSON. Raises pydantic's `ValidationError`."""
    return _ADAPTER.validate_json(text)


_ADAPTER = TypeAdapter(ImageFacts)
