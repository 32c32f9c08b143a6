"""The fields of a pod's spec and their types, from the newest Kubernetes version that muster supports.

`make generate` writes the file from the official client: validating a template needs no cluster and no client.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

POD_SPEC = "PodSpec"


@dataclass(frozen=True)
class PodSchema:
    """`kubernetes` is the version, `types` the fields of each type.

    The type of a field is the name of another type; text, integer, boolean, quantity, port or anything; a list of them,
    [item]; or a map of them, {value}.
    """

    kubernetes: str
    types: Mapping[str, Mapping[str, str]]


@lru_cache(maxsize=1)
def pod_schema() -> PodSchema:
    """Return the schema, which is read once."""
    read = json.loads(files("muster.api.validation.rules.pods").joinpath("pod_fields.json").read_text(encoding="utf-8"))
    return PodSchema(read["kubernetes"], read["types"])
