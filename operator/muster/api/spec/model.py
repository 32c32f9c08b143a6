"""Base types of the resource."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, JsonValue, WithJsonSchema
from pydantic.alias_generators import to_camel

FREE = "x-kubernetes-preserve-unknown-fields"

KubernetesObject = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object", FREE: True})]
"""A part of a pod that muster passes on unchanged; the API server validates it."""


class Model(BaseModel):
    """Base of every part of the resource: camelCase outside, frozen inside, no unknown fields and no coerced values."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )
