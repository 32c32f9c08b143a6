"""Convert pydantic's JSON schema to the structural OpenAPI schema of a CRD, and look up fields in it."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from pydantic import BaseModel

from muster.api.document import JSON, Path
from muster.api.json_fields import mapping
from muster.api.spec.job import Spec
from muster.api.status.status import Status
from muster.api.validation.all_rules import RULES

Schema = dict[str, JSON]

_KEPT = ("description", "default", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems",
         "maxItems", "minProperties", "maxProperties", "nullable", "x-kubernetes-preserve-unknown-fields")  # fmt: skip

_LIST_KEYS = {"env": "name", "metrics": "name", "inputs": "name", "conditions": "type"}
"""Lists with a key: server-side apply merges their entries by it and rejects duplicates."""


@lru_cache
def spec_schema() -> Schema:
    """The schema of `spec`, with the rules that CEL can express."""
    schema = _structural(Spec)
    for rule in RULES:
        for place in rule.places if rule.cel is not None else ():
            target = _at_place(schema, place)
            rules = target.setdefault("x-kubernetes-validations", [])
            if isinstance(rules, list):
                rules.append({"rule": rule.cel, "message": rule.sentence})
    return schema


@lru_cache
def status_schema() -> Schema:
    """The schema of `status`."""
    return _without_defaults(_structural(Status))


def lookup(path: Path) -> Schema | None:
    """The schema at a path that begins with `spec`; None if there is no such field."""
    schema: Schema | None = spec_schema() if path[:1] == ("spec",) else None
    for part in path[1:]:
        if schema is None:
            return None
        name = "items" if isinstance(part, int) else part
        below = schema.get("items") if isinstance(part, int) else mapping(schema.get("properties")).get(name)
        below = schema.get("additionalProperties") if below is None else below
        schema = below if isinstance(below, dict) else None
    return schema


def field_names(path: Path) -> list[str]:
    """The fields that an object at `path` may have."""
    return list(mapping((lookup(path) or {}).get("properties")))


def _without_defaults(schema: Schema) -> Schema:
    """Remove defaults: muster writes the whole status, and a missing field means that the value is unknown."""
    result = {key: value for key, value in schema.items() if key != "default"}
    for name in ("items", "additionalProperties"):
        if name in schema:
            result[name] = _without_defaults(mapping(schema[name]))
    if "properties" in schema:
        fields = mapping(schema["properties"])
        result["properties"] = {key: _without_defaults(mapping(field)) for key, field in fields.items()}
    return result


def _structural(model: type[BaseModel]) -> Schema:
    source = model.model_json_schema(by_alias=True, mode="validation")
    return _converted(source, mapping(source.get("$defs")), "")


def _converted(source: Mapping[str, JSON], definitions: Mapping[str, JSON], name: str) -> Schema:
    """`source` without references, titles and unions; `name` is the field's name."""
    reference = source.get("$ref")
    if isinstance(reference, str):
        source = {**mapping(definitions[reference.rpartition("/")[2]]), **source}
    options = source.get("anyOf")
    if isinstance(options, list):
        return _union(source, [mapping(option) for option in options], definitions, name)
    result: Schema = {key: source[key] for key in _KEPT if key in source and source[key] not in ([], None)}
    if "const" in source:
        result["enum"] = [source["const"]]
    kind = source.get("type")
    if kind is not None:
        result["type"] = kind
    if kind == "integer":
        result["format"] = "int64"
    if kind == "array":
        result["items"] = _converted(mapping(source["items"]), definitions, "")
        result.update(_list_type(name))
    values = source.get("additionalProperties")
    if isinstance(values, dict):
        result["additionalProperties"] = _converted(values, definitions, name)
    if "properties" in source:
        result.update(_properties(source, definitions))
    if kind == "object" and result.get("default") == {} and "properties" not in source:
        del result["default"]
    return result


def _properties(source: Mapping[str, JSON], definitions: Mapping[str, JSON]) -> Schema:
    fields = mapping(source["properties"])
    result: Schema = {
        "properties": {key: _converted(mapping(field), definitions, key) for key, field in fields.items()}
    }
    if source.get("required"):
        result["required"] = source["required"]
    return result


def _union(
    source: Mapping[str, JSON], options: Iterable[Mapping[str, JSON]], definitions: Mapping[str, JSON], name: str
) -> Schema:
    own = {key: source[key] for key in _KEPT if key in source and source[key] not in ([], None)}
    some = [option for option in options if option.get("type") != "null"]
    if len(some) == 1:
        return {**_converted(some[0], definitions, name), **own}
    number = next(option for option in some if option.get("type") == "integer")
    word = next(option for option in some if "const" in option)
    least, most = number["minimum"], number["maximum"]
    rule = f"type(self) == string ? self == '{word['const']}' : int(self) >= {least} && int(self) <= {most}"
    message = f"allowed are {word['const']} and whole numbers from {least} to {most}"
    return {
        **own,
        "x-kubernetes-int-or-string": True,
        "x-kubernetes-validations": [{"rule": rule, "message": message}],
    }


def _list_type(name: str) -> Schema:
    if name in _LIST_KEYS:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [_LIST_KEYS[name]]}
    return {"x-kubernetes-list-type": "atomic"}


def _at_place(schema: Schema, place: str) -> Schema:
    """The part of a schema at a rule's place, such as `spec.env[].name`."""
    for part in place.replace("[]", ".[]").split(".")[1:]:
        schema = mapping(schema["items"] if part == "[]" else mapping(schema["properties"])[part])
    return schema
