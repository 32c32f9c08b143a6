"""What the resource's types are made from."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, JsonValue, WithJsonSchema
from pydantic.alias_generators import to_camel

FREE = "x-kubernetes-preserve-unknown-fields"

KubernetesObject = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object", FREE: True})]
"""A part of a pod that muster hands on as it is: the API server knows what may stand in it."""


class Model(BaseModel):
    """What every part of the resource shares: camelCase outside, frozen inside, no unknown and no coerced values."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )
