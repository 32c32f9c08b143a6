"""Messages for pydantic's errors: the found value, the allowed values, and the remedy."""

import difflib
import shlex
from collections.abc import Callable, Mapping, Sequence

from pydantic_core import ErrorDetails

from muster.api.document import JSON, FieldPath, quote
from muster.api.plurals import pluralize
from muster.api.schema import find_schema, list_field_names

_QUANTITIES = "numbers and text with a unit: 8, 0.5, 500m, 64Gi"

_UNIONS = {
    "procsPerNode": "Auto and whole numbers from 1 to 128",
    "hyperparameters": "text, a number, true and false; join a list to one text that the script splits",
    "limits": _QUANTITIES,
    "requests": _QUANTITIES,
}
"""Fields that accept several types, and their allowed values."""

_MAX_SHOWN_FIELDS = 12

_MAX_NAME_CHARS = 100
"""The number of characters that muster compares with field names. The longest field name has half as many."""

IMPORTED_KINDS = ("PyTorchJob", "MPIJob", "TrainJob", "JobSet")
IMPORT_HINT = "`muster import` converts it (docs/migrate-kubeflow.md)"

MPI_OPERATOR_HINT = 'docs/mpi.md, "Coming from mpi-operator", maps each of its fields'

_MPI_JOB_FIELDS = {
    "slotsPerWorker": "spec.procsPerNode",
    "mpiImplementation": "spec.launcher.mpi.implementation",
    "mpiReplicaSpecs": "spec.nodes, image, command and template",
    "runPolicy": "spec.cleanPodPolicy, ttlSecondsAfterFinished, suspend and activeDeadlineSeconds",
    "sshAuthMountPath": "not needed",
}
"""Fields of kubeflow.org/v2beta1's MPIJob, and the fields that replace them."""

_Context = Mapping[str, object]

_EXAMPLES: dict[str | int, str] = {
    "role": "arn:aws:iam::111122223333:role/Training",
    "assumeRoleArn": "arn:aws:iam::111122223333:role/Muster",
    "instanceType": "ml.p4d.24xlarge",
    "region": "us-west-2",
}
"""Examples of values for fields whose patterns are hard to read."""


def build_message(path: FieldPath, errors: Sequence[ErrorDetails]) -> str:
    """Return one message for all pydantic errors at `path`."""
    error = errors[0]
    allowed_values = next((allowed for name, allowed in _UNIONS.items() if _is_within(path, name)), None)
    if allowed_values is not None and error["type"] not in ("missing", "dict_type", "too_long"):
        return f"found {describe_value(error['input'])}; allowed are {allowed_values}"
    explain = _MESSAGES.get(error["type"], _explain_other)
    return explain(path, error["input"], error.get("ctx", {}))


def describe_value(value: JSON) -> str:
    """Describe a value for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {quote(value)}" if value else "an empty text"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return f"fields ({', '.join(quote(key) for key in list(value)[:3])})" if value else "no fields ({})"
    return str(value)


def build_unknown_field_message(name: str, allowed: Sequence[str]) -> str:
    """Return the message for an unknown field; `allowed` are the names of the known fields."""
    if name in _MPI_JOB_FIELDS:
        return f"unknown field; MPIJob's {name} is {_MPI_JOB_FIELDS[name]} here: {MPI_OPERATOR_HINT}"
    field_by_lower_name = {field.lower(): field for field in allowed}
    lower_name = name[:_MAX_NAME_CHARS].lower().replace("_", "")
    close_matches = difflib.get_close_matches(lower_name, field_by_lower_name, n=1, cutoff=0.6)
    if close_matches:
        return f"unknown field; did you mean {field_by_lower_name[close_matches[0]]}?"
    if not allowed:
        return "unknown field; there are none here, write {}"
    shown_fields = ", ".join(allowed[:_MAX_SHOWN_FIELDS]) + (", ..." if len(allowed) > _MAX_SHOWN_FIELDS else "")
    return f"unknown field; allowed here: {shown_fields}"


def _is_within(path: FieldPath, name: str) -> bool:
    return name in path and (name == "procsPerNode" or path[-1] != name)


def _explain_missing(path: FieldPath, _: JSON, __: _Context) -> str:
    description = (find_schema(path) or {}).get("description")
    return "missing, and required" if description is None else f"missing, and required: {description}"


def _explain_unknown(path: FieldPath, _: JSON, __: _Context) -> str:
    return build_unknown_field_message(str(path[-1]), list_field_names(path[:-1]))


def _explain_text(_: FieldPath, value: JSON, __: _Context) -> str:
    is_scalar = isinstance(value, bool | int | float)
    return f"found {describe_value(value)}; text is expected" + (
        f': quote it ("{describe_value(value)}")' if is_scalar else ""
    )


def _explain_boolean(_: FieldPath, value: JSON, __: _Context) -> str:
    return f"found {describe_value(value)}; true or false is expected"


def _explain_integer(path: FieldPath, value: JSON, __: _Context) -> str:
    schema = find_schema(path) or {}
    hint = ", without quotes" if isinstance(value, str) and value.lstrip("-").isdigit() else ""
    allowed = f"from {schema['minimum']} to {schema['maximum']}" if "maximum" in schema else ""
    return f"found {describe_value(value)}; a whole number {allowed} is expected{hint}".replace("  ", " ")


def _explain_range(path: FieldPath, value: JSON, _: _Context) -> str:
    schema = find_schema(path) or {}
    return f"found {describe_value(value)}; allowed are {schema.get('minimum')} to {schema.get('maximum')}"


def _explain_list(path: FieldPath, value: JSON, _: _Context) -> str:
    hint = ""
    if path[-1] in ("command", "args") and isinstance(value, str):
        hint = f": write [{', '.join(quote(word) for word in _split_words(value))}]"
    elif isinstance(value, dict):
        hint = ": begin each entry with a dash"
    return f"found {describe_value(value)}; a list is expected{hint}"


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _explain_fields(path: FieldPath, value: JSON, _: _Context) -> str:
    names = list_field_names(path)
    hint = ""
    if isinstance(value, str) and value in names:
        hint = f": write {{{value}: {{}}}}"
    elif path[-1] == "hyperparameters":
        hint = ": write name: value for each"
    elif names:
        hint = f": {', '.join(names[:_MAX_SHOWN_FIELDS])}"
    return f"found {describe_value(value)}; fields are expected{hint}"


def _explain_too_short(path: FieldPath, value: JSON, context: _Context) -> str:
    unit = " characters are" if isinstance(value, str) and value else " is"
    return f"found {describe_value(value)}; at least {context.get('min_length')}{unit} needed{_format_example(path)}"


def _explain_too_long(_: FieldPath, value: JSON, context: _Context) -> str:
    if isinstance(value, str):
        return f"found {pluralize(len(value), 'character')}; at most {context.get('max_length')} are allowed"
    count = len(value) if isinstance(value, list | dict) else 0
    entries = {0: "more entries", 1: "1 entry"}.get(count, f"{count} entries")
    return f"found {entries}; at most {context.get('max_length')} are allowed"


def _explain_pattern(path: FieldPath, value: JSON, context: _Context) -> str:
    return f"found {describe_value(value)}; it must match {context.get('pattern')}{_format_example(path)}"


def _format_example(path: FieldPath) -> str:
    example = _EXAMPLES.get(path[-1])
    return "" if example is None else f", such as {example}"


def _explain_choice(_: FieldPath, value: JSON, context: _Context) -> str:
    allowed = str(context.get("expected")).replace("'", "").replace(" or ", " and ")
    hint = (
        " (with its quotes: without them YAML reads true or false)"
        if isinstance(value, bool) and "Off" in allowed
        else ""
    )
    return f"found {describe_value(value)}; allowed: {allowed}{hint}"


def _explain_other(_: FieldPath, value: JSON, __: _Context) -> str:
    return f"found {describe_value(value)}, which is not allowed here"


_MESSAGES: dict[str, Callable[[FieldPath, JSON, _Context], str]] = {
    "missing": _explain_missing,
    "extra_forbidden": _explain_unknown,
    "string_type": _explain_text,
    "literal_error": _explain_choice,
    "bool_type": _explain_boolean,
    "int_type": _explain_integer,
    "int_from_float": _explain_integer,
    "greater_than_equal": _explain_range,
    "less_than_equal": _explain_range,
    "tuple_type": _explain_list,
    "model_type": _explain_fields,
    "model_attributes_type": _explain_fields,
    "dict_type": _explain_fields,
    "too_short": _explain_too_short,
    "string_too_short": _explain_too_short,
    "too_long": _explain_too_long,
    "string_too_long": _explain_too_long,
    "string_pattern_mismatch": _explain_pattern,
}
