"""Parse the reports of a launch script's process about its training runs. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

_OBJECT_KEY = "$shape"
"""The key with which the script's process marks an object of an SDK class (`OBJECT_KEY` in
muster_standin/values.py)."""


@dataclass(frozen=True)
class SdkObject:
    """An object of an SDK class: the class's name and the object's arguments."""

    class_name: str
    fields: Mapping[str, Value]


Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | SdkObject | None"
"""The value of an argument."""


@dataclass(frozen=True)
class SessionSettings:
    """The region, default bucket and prefix that the script's session sets."""

    region: str | None = None
    bucket: str | None = None
    prefix: str | None = None


@dataclass(frozen=True)
class EstimatorFit:
    """A call of `fit` of an SDK 2 estimator. `location` is the script's line."""

    location: str
    class_name: str
    arguments: Mapping[str, Value]
    hyperparameters: Mapping[str, Value]
    call: Mapping[str, Value]
    session: SessionSettings


@dataclass(frozen=True)
class TrainerRun:
    """A call of `train` of an SDK 3 ModelTrainer."""

    location: str
    arguments: Mapping[str, Value]
    call: Mapping[str, Value]
    session: SessionSettings


@dataclass(frozen=True)
class Note:
    """A message for the user, and the script's line that it is about ("" if there is none)."""

    location: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


@dataclass(frozen=True)
class NotebookFile:
    """A file that a notebook writes with `%%writefile`."""

    path: str
    append: bool
    text: str


@dataclass(frozen=True)
class Question:
    """A question of the script, which waits for muster's answer."""

    about: Mapping[str, str]


@dataclass(frozen=True)
class Failure:
    """The error that ended the script. `missing_module` is a module that the script's Python lacks."""

    note: Note
    missing_module: str | None = None


@dataclass(frozen=True)
class ScriptEnd:
    """The script ended without an error."""


Record: TypeAlias = EstimatorFit | TrainerRun | Note | NotebookFile | Question | Failure | ScriptEnd


@dataclass(frozen=True)
class Recording:
    """All reports of a script: its runs in order, notes, the notebook's files, and the failure."""

    runs: Sequence[EstimatorFit | TrainerRun] = ()
    notes: Sequence[Note] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    failure: Failure | None = None


def parse_record(line: str) -> Record:
    """Parse a line from the script's process. Raises `ValueError` for an invalid line."""
    fields = json.loads(line)
    location = str(fields["location"])
    match fields["kind"]:
        case "fit":
            hyperparameters = _read_mapping(fields["hyperparameters"])
            session = SessionSettings(**fields["session"])
            arguments, call = _read_mapping(fields["arguments"]), _read_mapping(fields["call"])
            return EstimatorFit(location, str(fields["class"]), arguments, hyperparameters, call, session)
        case "train":
            session = SessionSettings(**fields["session"])
            return TrainerRun(location, _read_mapping(fields["arguments"]), _read_mapping(fields["call"]), session)
        case "question":
            return Question({str(name): str(value) for name, value in fields["arguments"].items()})
        case kind:
            return _read_message(str(kind), location, fields)


def _read_message(kind: str, location: str, fields: Mapping[str, object]) -> Note | NotebookFile | Failure | ScriptEnd:
    match kind:
        case "warning":
            return Note(location, str(fields["message"]))
        case "file":
            return NotebookFile(str(fields["path"]), bool(fields["append"]), str(fields["text"]))
        case "failed":
            missing_module = fields["missing"]
            note = Note(str(fields["at"]), str(fields["message"]))
            return Failure(note, None if missing_module is None else str(missing_module))
        case "done":
            return ScriptEnd()
    raise ValueError(f"a record of kind {kind!r}")


def _read_mapping(value: object) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} instead of arguments")
    return {str(name): _read_value(entry) for name, entry in value.items()}


def _read_value(value: object) -> Value:
    if isinstance(value, dict):
        if _OBJECT_KEY in value:
            return SdkObject(str(value[_OBJECT_KEY]), _read_mapping(value["fields"]))
        return _read_mapping(value)
    if isinstance(value, list):
        return [_read_value(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"a {type(value).__name__} instead of a value")
