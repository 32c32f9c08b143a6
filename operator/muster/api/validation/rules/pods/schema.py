"""The fields of a pod's spec and their types, for the newest Kubernetes version that muster supports.

`make generate` writes pod_fields.json from the official client, so validation needs neither a cluster nor the client.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

POD_SPEC = "PodSpec"


@dataclass(frozen=True)
class PodSchema:
    """`kubernetes` is the version. `types` has the fields of each type, and the type of each field.

    A field's type is the name of a type in `types`, or text, integer, boolean, quantity, port or anything. [item] is a
    list of the type `item`, and {value} is a map of the type `value`.
    """

    kubernetes: str
    types: Mapping[str, Mapping[str, str]]


@lru_cache(maxsize=1)
def load_pod_schema() -> PodSchema:
    """Return the schema, which the process reads once."""
    document = json.loads(
        files("muster.api.validation.rules.pods").joinpath("pod_fields.json").read_text(encoding="utf-8")
    )
    return PodSchema(document["kubernetes"], document["types"])
