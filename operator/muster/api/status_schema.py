"""The schema of the status, for the CRD. It is not in `schema.py`, because validating a job needs no status."""

from functools import lru_cache

from muster.api.json_fields import read_mapping
from muster.api.schema import Schema, convert_model
from muster.api.status.status import Status


@lru_cache
def build_status_schema() -> Schema:
    """Return the schema of `status`."""
    return _remove_defaults(convert_model(Status))


def _remove_defaults(schema: Schema) -> Schema:
    """Remove the defaults: in the status, a missing field means that its value is unknown."""
    result = {key: value for key, value in schema.items() if key != "default"}
    for name in ("items", "additionalProperties"):
        if name in schema:
            result[name] = _remove_defaults(read_mapping(schema[name]))
    if "properties" in schema:
        fields = read_mapping(schema["properties"])
        result["properties"] = {key: _remove_defaults(read_mapping(field)) for key, field in fields.items()}
    return result
