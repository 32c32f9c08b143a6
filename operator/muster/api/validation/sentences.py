"""Messages for pydantic's errors: what was found, what is allowed, what to do."""

import difflib
import shlex
from collections.abc import Callable, Mapping, Sequence

from pydantic_core import ErrorDetails

from muster.api.amounts import amount
from muster.api.document import JSON, Path, quoted
from muster.api.schema import field_names, lookup

_QUANTITIES = "numbers and text with a unit: 8, 0.5, 500m, 64Gi"

_UNIONS = {
    "procsPerNode": "Auto and whole numbers from 1 to 128",
    "hyperparameters": "text, a number, true and false; join a list to one text that the script splits",
    "limits": _QUANTITIES,
    "requests": _QUANTITIES,
}
"""Fields of several types, and what is allowed in them."""

_KNOWN_SHOWN = 12

_LONGEST_NAME = 100
"""In characters. Suggest no field for a longer name: all fields are less than half as long."""

COMING_FROM_MPI_OPERATOR = 'docs/mpi.md, "Coming from mpi-operator", maps each of its fields'

_OF_AN_MPI_JOB = {
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
"""Examples for required fields whose pattern is hard to read."""


def sentence(path: Path, errors: Sequence[ErrorDetails]) -> str:
    """One message for all errors of pydantic at `path`."""
    error = errors[0]
    union = next((allowed for name, allowed in _UNIONS.items() if _is_within(path, name)), None)
    if union is not None and error["type"] not in ("missing", "dict_type", "too_long"):
        return f"found {describe_value(error['input'])}; allowed are {union}"
    write = _SENTENCES.get(error["type"], _something_else)
    return write(path, error["input"], error.get("ctx", {}))


def describe_value(value: JSON) -> str:
    """Describe a value for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {quoted(value)}" if value else "an empty text"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return f"fields ({', '.join(quoted(key) for key in list(value)[:3])})" if value else "no fields ({})"
    return str(value)


def unknown_field(name: str, allowed: Sequence[str]) -> str:
    """The message for an unknown field; `allowed` are the known ones."""
    if name in _OF_AN_MPI_JOB:
        return f"unknown field; MPIJob's {name} is {_OF_AN_MPI_JOB[name]} here: {COMING_FROM_MPI_OPERATOR}"
    folded = {field.lower(): field for field in allowed}
    folded_name = name[:_LONGEST_NAME].lower().replace("_", "")
    close = difflib.get_close_matches(folded_name, folded, n=1, cutoff=0.6)
    if close:
        return f"unknown field; did you mean {folded[close[0]]}?"
    if not allowed:
        return "unknown field; there are none here, write {}"
    listed = ", ".join(allowed[:_KNOWN_SHOWN]) + (", ..." if len(allowed) > _KNOWN_SHOWN else "")
    return f"unknown field; allowed here: {listed}"


def _is_within(path: Path, name: str) -> bool:
    return name in path and (name == "procsPerNode" or path[-1] != name)


def _missing(path: Path, _: JSON, __: _Context) -> str:
    description = (lookup(path) or {}).get("description")
    return "missing, and required" if description is None else f"missing, and required: {description}"


def _unknown(path: Path, _: JSON, __: _Context) -> str:
    return unknown_field(str(path[-1]), field_names(path[:-1]))


def _text(_: Path, value: JSON, __: _Context) -> str:
    scalar = isinstance(value, bool | int | float)
    return f"found {describe_value(value)}; text is expected" + (
        f': quote it ("{describe_value(value)}")' if scalar else ""
    )


def _truth_value(_: Path, value: JSON, __: _Context) -> str:
    return f"found {describe_value(value)}; true or false is expected"


def _whole_number(path: Path, value: JSON, __: _Context) -> str:
    schema = lookup(path) or {}
    hint = ", without quotes" if isinstance(value, str) and value.lstrip("-").isdigit() else ""
    allowed = f"from {schema['minimum']} to {schema['maximum']}" if "maximum" in schema else ""
    return f"found {describe_value(value)}; a whole number {allowed} is expected{hint}".replace("  ", " ")


def _range(path: Path, value: JSON, _: _Context) -> str:
    schema = lookup(path) or {}
    return f"found {describe_value(value)}; allowed are {schema.get('minimum')} to {schema.get('maximum')}"


def _list(path: Path, value: JSON, _: _Context) -> str:
    hint = ""
    if path[-1] in ("command", "args") and isinstance(value, str):
        hint = f": write [{', '.join(quoted(word) for word in _words(value))}]"
    elif isinstance(value, dict):
        hint = ": begin each entry with a dash"
    return f"found {describe_value(value)}; a list is expected{hint}"


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _fields(path: Path, value: JSON, _: _Context) -> str:
    names = field_names(path)
    hint = ""
    if isinstance(value, str) and value in names:
        hint = f": write {{{value}: {{}}}}"
    elif path[-1] == "hyperparameters":
        hint = ": write name: value for each"
    elif names:
        hint = f": {', '.join(names[:_KNOWN_SHOWN])}"
    return f"found {describe_value(value)}; fields are expected{hint}"


def _too_short(path: Path, value: JSON, context: _Context) -> str:
    of = " characters are" if isinstance(value, str) and value else " is"
    return f"found {describe_value(value)}; at least {context.get('min_length')}{of} needed{_example(path)}"


def _too_long(_: Path, value: JSON, context: _Context) -> str:
    if isinstance(value, str):
        return f"found {amount(len(value), 'character')}; at most {context.get('max_length')} are allowed"
    count = len(value) if isinstance(value, list | dict) else 0
    entries = {0: "more entries", 1: "1 entry"}.get(count, f"{count} entries")
    return f"found {entries}; at most {context.get('max_length')} are allowed"


def _pattern(path: Path, value: JSON, context: _Context) -> str:
    return f"found {describe_value(value)}; it must match {context.get('pattern')}{_example(path)}"


def _example(path: Path) -> str:
    example = _EXAMPLES.get(path[-1])
    return "" if example is None else f", such as {example}"


def _choice(_: Path, value: JSON, context: _Context) -> str:
    allowed = str(context.get("expected")).replace("'", "").replace(" or ", " and ")
    hint = (
        " (with its quotes: without them YAML reads true or false)"
        if isinstance(value, bool) and "Off" in allowed
        else ""
    )
    return f"found {describe_value(value)}; allowed: {allowed}{hint}"


def _something_else(_: Path, value: JSON, __: _Context) -> str:
    return f"found {describe_value(value)}, which is not allowed here"


_SENTENCES: dict[str, Callable[[Path, JSON, _Context], str]] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "string_type": _text,
    "literal_error": _choice,
    "bool_type": _truth_value,
    "int_type": _whole_number,
    "int_from_float": _whole_number,
    "greater_than_equal": _range,
    "less_than_equal": _range,
    "tuple_type": _list,
    "model_type": _fields,
    "model_attributes_type": _fields,
    "dict_type": _fields,
    "too_short": _too_short,
    "string_too_short": _too_short,
    "too_long": _too_long,
    "string_too_long": _too_long,
    "string_pattern_mismatch": _pattern,
}
