"""Types of image_facts.json: AWS' images for training. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter


@dataclass(frozen=True)
class Build:
    """Images of one framework version, for some versions of Python ("py310").

    `registries` is a key of `ImageFacts.registries`. `system` is the end of the tag ("cu118-ubuntu20.04"), "" if
    there is none.
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

    `source` is where the facts come from. `domains` are the regions of each DNS domain of AWS. `registries` are, by
    name,
    the accounts with the images, and the regions of each account. `hugging_face` has the images for each version of
    transformers, whose own versions are those of PyTorch or TensorFlow ("pytorch2.0.0").
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
