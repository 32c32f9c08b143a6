"""Base types of the resource."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, JsonValue, WithJsonSchema
from pydantic.alias_generators import to_camel

PRESERVE_UNKNOWN_FIELDS = "x-kubernetes-preserve-unknown-fields"

KubernetesObject = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object", PRESERVE_UNKNOWN_FIELDS: True})]
"""A part of a pod that muster passes on unchanged; the API server validates it."""


class Model(BaseModel):
    """The base class of all parts of a resource: frozen, camelCase in JSON, without unknown fields or type coercion."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        strict=True,
        defer_build=True,
    )
