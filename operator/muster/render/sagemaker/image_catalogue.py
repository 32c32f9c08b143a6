"""What is known of the images that AWS has for training, as the types of image_facts.json. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter


@dataclass(frozen=True)
class Build:
    """Images of one version of a framework, for some versions of Python ("py310").

    `registries` names one of `ImageFacts.registries`; `system` ends the tag ("cu118-ubuntu20.04"), and is "" where
    nothing does.
    """

    pythons: tuple[str, ...]
    repository: str
    registries: str
    system: str = ""


@dataclass(frozen=True)
class Catalogue:
    """A framework's images: its versions, the shorter names that some of them have, and what they run on."""

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
    """All that is known.

    `source` says whose word it is. `domains` has the regions of each DNS domain of AWS; `registries` has, for each of
    their names, the accounts that keep the images and the regions of each. `hugging_face` has, for each version of
    transformers, the versions of PyTorch and TensorFlow beneath ("pytorch2.0.0").
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
    """Facts from their JSON. Raises pydantic's `ValidationError` for what isn't a document of them."""
    return _ADAPTER.validate_json(text)


_ADAPTER = TypeAdapter(ImageFacts)
