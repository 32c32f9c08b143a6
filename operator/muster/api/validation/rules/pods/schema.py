"""The fields of a pod's spec and their types, as the newest Kubernetes that muster knows has them.

`make generate` writes the file from the official client, so that no cluster and no client is needed to read a template.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

POD_SPEC = "PodSpec"


@dataclass(frozen=True)
class PodSchema:
    """`kubernetes` is the release, `types` has the fields of each type.

    A field's type is the name of another one, one of text, integer, boolean, quantity, port and anything, a list of
    such, [item], or a map of them, {value}.
    """

    kubernetes: str
    types: Mapping[str, Mapping[str, str]]


@lru_cache(maxsize=1)
def pod_schema() -> PodSchema:
    """The schema, read once."""
    read = json.loads(files("muster.api.validation.rules.pods").joinpath("pod_fields.json").read_text(encoding="utf-8"))
    return PodSchema(read["kubernetes"], read["types"])
