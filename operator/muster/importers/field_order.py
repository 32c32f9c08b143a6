"""The order of the fields of a written job. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from muster.api.document import JSON
from muster.api.spec.model import Model


def order_fields(fields: Mapping[str, JSON], model: type[Model]) -> dict[str, JSON]:
    """Return the fields in the order of the model's fields, and then the others."""
    names = [str(field.alias) for field in model.model_fields.values()]
    return {name: fields[name] for name in chain(names, fields.keys() - set(names)) if name in fields}
