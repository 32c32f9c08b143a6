"""Parse the reports of a launch script's process about its training runs. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

_SHAPE = "$shape"
"""The key with which the script's process marks an object of an SDK class (`values.SHAPE` there)."""


@dataclass(frozen=True)
class SdkObject:
    """An object of one of the SDK's classes: its arguments by name."""

    kind: str
    fields: Mapping[str, Value]


Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | SdkObject | None"
"""An argument's value."""


@dataclass(frozen=True)
class SessionFacts:
    """The settings of the script's session: its region, default bucket and prefix."""

    region: str | None = None
    bucket: str | None = None
    prefix: str | None = None


@dataclass(frozen=True)
class EstimatorFit:
    """A call of `fit` of an SDK 2 estimator. `place` is the script's line, `kind` the estimator's class."""

    place: str
    kind: str
    arguments: Mapping[str, Value]
    hyperparameters: Mapping[str, Value]
    call: Mapping[str, Value]
    session: SessionFacts


@dataclass(frozen=True)
class TrainerRun:
    """A call of `train` of an SDK 3 ModelTrainer."""

    place: str
    arguments: Mapping[str, Value]
    call: Mapping[str, Value]
    session: SessionFacts


@dataclass(frozen=True)
class Note:
    """A message for the user, and its line in the script ("" if there is none)."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


@dataclass(frozen=True)
class WrittenFile:
    """A file that a notebook writes with `%%writefile`."""

    path: str
    append: bool
    text: str


@dataclass(frozen=True)
class Question:
    """A question of the script, which waits for the answer."""

    about: Mapping[str, str]


@dataclass(frozen=True)
class Failure:
    """Why the script failed. `missing` is a module that its Python lacks."""

    note: Note
    missing: str | None = None


@dataclass(frozen=True)
class Finished:
    """The script finished."""


Record: TypeAlias = EstimatorFit | TrainerRun | Note | WrittenFile | Question | Failure | Finished


@dataclass(frozen=True)
class Recording:
    """All reports of a script: its runs in order, notes, files of notebooks, and its failure."""

    runs: Sequence[EstimatorFit | TrainerRun] = ()
    notes: Sequence[Note] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    failure: Failure | None = None


def parse_record(line: str) -> Record:
    """Parse a line from the script's process. Raises `ValueError` for an invalid line."""
    fields = json.loads(line)
    location = str(fields["place"])
    match fields["kind"]:
        case "fit":
            hyperparameters = _read_mapping(fields["hyperparameters"])
            session = SessionFacts(**fields["session"])
            arguments, call = _read_mapping(fields["arguments"]), _read_mapping(fields["call"])
            return EstimatorFit(location, str(fields["class"]), arguments, hyperparameters, call, session)
        case "train":
            session = SessionFacts(**fields["session"])
            return TrainerRun(location, _read_mapping(fields["arguments"]), _read_mapping(fields["call"]), session)
        case "question":
            return Question({str(name): str(value) for name, value in fields["about"].items()})
        case kind:
            return _read_message(str(kind), location, fields)


def _read_message(kind: str, location: str, fields: Mapping[str, object]) -> Note | WrittenFile | Failure | Finished:
    match kind:
        case "warning":
            return Note(location, str(fields["message"]))
        case "file":
            return WrittenFile(str(fields["path"]), bool(fields["append"]), str(fields["text"]))
        case "failed":
            missing = fields["missing"]
            note = Note(str(fields["at"]), str(fields["message"]))
            return Failure(note, None if missing is None else str(missing))
        case "done":
            return Finished()
    raise ValueError(f"a record of kind {kind!r}")


def _read_mapping(value: object) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} instead of arguments")
    return {str(name): _read_value(entry) for name, entry in value.items()}


def _read_value(value: object) -> Value:
    if isinstance(value, dict):
        if _SHAPE in value:
            return SdkObject(str(value[_SHAPE]), _read_mapping(value["fields"]))
        return _read_mapping(value)
    if isinstance(value, list):
        return [_read_value(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"a {type(value).__name__} instead of a value")
