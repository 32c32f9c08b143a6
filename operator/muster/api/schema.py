"""Convert pydantic's JSON schema to the structural OpenAPI schema of a CRD, and look up the spec's fields in it."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from pydantic import BaseModel

from muster.api.document import JSON, FieldPath
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Spec
from muster.api.validation.all_rules import RULES

Schema = dict[str, JSON]

_COPIED_KEYS = ("description", "default", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems",
         "maxItems", "minProperties", "maxProperties", "nullable", "x-kubernetes-preserve-unknown-fields")  # fmt: skip

_LIST_KEYS = {"env": "name", "metrics": "name", "inputs": "name", "conditions": "type"}
"""The key field of each list whose entries server-side apply merges. The API server rejects duplicate keys."""


@lru_cache
def build_spec_schema() -> Schema:
    """Return the schema of `spec`, with the rules that CEL can express."""
    schema = convert_model(Spec)
    for rule in RULES:
        for path in rule.schema_paths if rule.cel is not None else ():
            target = _find_subschema(schema, path)
            rules = target.setdefault("x-kubernetes-validations", [])
            if isinstance(rules, list):
                rules.append({"rule": rule.cel, "message": rule.message})
    return schema


def find_schema(path: FieldPath) -> Schema | None:
    """Return the schema of the field at a path that begins with `spec`; None if there is no such field."""
    schema: Schema | None = build_spec_schema() if path[:1] == ("spec",) else None
    for part in path[1:]:
        if schema is None:
            return None
        name = "items" if isinstance(part, int) else part
        child = schema.get("items") if isinstance(part, int) else read_mapping(schema.get("properties")).get(name)
        child = schema.get("additionalProperties") if child is None else child
        schema = child if isinstance(child, dict) else None
    return schema


def list_field_names(path: FieldPath) -> list[str]:
    """Return the names of the fields that an object at `path` may have."""
    return list(read_mapping((find_schema(path) or {}).get("properties")))


def convert_model(model: type[BaseModel]) -> Schema:
    """Return the schema of a model, without references, titles and unions."""
    source = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(source, read_mapping(source.get("$defs")), "")


def _convert(source: Mapping[str, JSON], definitions: Mapping[str, JSON], name: str) -> Schema:
    """Resolve the references and unions of `source`, and remove titles; `name` is the field's name."""
    reference = source.get("$ref")
    if isinstance(reference, str):
        source = {**read_mapping(definitions[reference.rpartition("/")[2]]), **source}
    options = source.get("anyOf")
    if isinstance(options, list):
        return _convert_union(source, [read_mapping(option) for option in options], definitions, name)
    result: Schema = {key: source[key] for key in _COPIED_KEYS if key in source and source[key] not in ([], None)}
    if "const" in source:
        result["enum"] = [source["const"]]
    type_name = source.get("type")
    if type_name is not None:
        result["type"] = type_name
    if type_name == "integer":
        result["format"] = "int64"
    if type_name == "array":
        result["items"] = _convert(read_mapping(source["items"]), definitions, "")
        result.update(_build_list_type(name))
    values = source.get("additionalProperties")
    if isinstance(values, dict):
        result["additionalProperties"] = _convert(values, definitions, name)
    if "properties" in source:
        result.update(_convert_properties(source, definitions))
    if type_name == "object" and result.get("default") == {} and "properties" not in source:
        del result["default"]
    return result


def _convert_properties(source: Mapping[str, JSON], definitions: Mapping[str, JSON]) -> Schema:
    fields = read_mapping(source["properties"])
    result: Schema = {
        "properties": {key: _convert(read_mapping(field), definitions, key) for key, field in fields.items()}
    }
    if source.get("required"):
        result["required"] = source["required"]
    return result


def _convert_union(
    source: Mapping[str, JSON], options: Iterable[Mapping[str, JSON]], definitions: Mapping[str, JSON], name: str
) -> Schema:
    copied = {key: source[key] for key in _COPIED_KEYS if key in source and source[key] not in ([], None)}
    alternatives = [option for option in options if option.get("type") != "null"]
    if len(alternatives) == 1:
        return {**_convert(alternatives[0], definitions, name), **copied}
    number = next(option for option in alternatives if option.get("type") == "integer")
    constant = next(option for option in alternatives if "const" in option)
    minimum, maximum = number["minimum"], number["maximum"]
    rule = f"type(self) == string ? self == '{constant['const']}' : int(self) >= {minimum} && int(self) <= {maximum}"
    message = f"allowed are {constant['const']} and whole numbers from {minimum} to {maximum}"
    return {
        **copied,
        "x-kubernetes-int-or-string": True,
        "x-kubernetes-validations": [{"rule": rule, "message": message}],
    }


def _build_list_type(name: str) -> Schema:
    if name in _LIST_KEYS:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [_LIST_KEYS[name]]}
    return {"x-kubernetes-list-type": "atomic"}


def _find_subschema(schema: Schema, path: str) -> Schema:
    """Return the part of the schema at a rule's path, such as `spec.env[].name`."""
    for part in path.replace("[]", ".[]").split(".")[1:]:
        schema = read_mapping(schema["items"] if part == "[]" else read_mapping(schema["properties"])[part])
    return schema
