"""The JSON schema of the resource, for editors, from the same types as the CRD."""

from __future__ import annotations

import json
from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.names import API_VERSION, KIND, METADATA_FIELDS, NAME_MESSAGE, NAME_PATTERN
from muster.api.schema import Schema, build_spec_schema
from muster.api.status_schema import build_status_schema

_DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that yaml-language-server and other editors read."""

_FOR_KUBERNETES = "x-kubernetes-"
_KEEPS_UNKNOWN_FIELDS = "x-kubernetes-preserve-unknown-fields"
_INTEGER_OR_STRING = "x-kubernetes-int-or-string"
_OPEN_API_KEYS = ("format", "nullable")
"""Keys of OpenAPI that JSON schema lacks or reads in another way."""


def build_editor_schema() -> Schema:
    """Return the schema. Unlike the CRD's, it forbids unknown fields, which muster refuses too."""
    name: Schema = {"type": "string", "pattern": f"^{NAME_PATTERN}$", "description": f"The name: {NAME_MESSAGE}."}
    fields: dict[str, JSON] = {field: {} for field in METADATA_FIELDS}
    metadata: Schema = {"type": "object", "properties": {**fields, "name": name}, "additionalProperties": False}
    return {
        "$schema": _DIALECT,
        "title": KIND,
        "description": "A distributed training job: one command, run by nodes x procsPerNode ranks.",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "metadata": metadata,
            "spec": _convert(build_spec_schema()),
            "status": _convert(build_status_schema()),
        },
        "additionalProperties": False,
    }


def format_editor_schema() -> str:
    """Return the schema as JSON text."""
    return json.dumps(build_editor_schema(), indent=2, ensure_ascii=False) + "\n"


def _convert(schema: Mapping[str, JSON]) -> Schema:
    """Return a structural schema of OpenAPI as a JSON schema, without Kubernetes' extensions."""
    result: Schema = {
        key: value for key, value in schema.items() if not key.startswith(_FOR_KUBERNETES) and key not in _OPEN_API_KEYS
    }
    if schema.get(_INTEGER_OR_STRING):
        result["type"] = ["integer", "string"]
    if schema.get("nullable"):
        result["type"] = [schema.get("type"), "null"]
    if "properties" in schema:
        fields = read_mapping(schema["properties"])
        result["properties"] = {name: _convert(read_mapping(field)) for name, field in fields.items()}
        if not schema.get(_KEEPS_UNKNOWN_FIELDS):
            result["additionalProperties"] = False
    for name in ("items", "additionalProperties"):
        if name in schema:
            result[name] = _convert(read_mapping(schema[name]))
    return result
