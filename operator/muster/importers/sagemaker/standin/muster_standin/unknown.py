"""Values that only AWS could return: the script may pass them on, but a job's file can't contain them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .errors import Unsupported
from .recorder import Recorder

_MARK = re.compile(r"<unknown: ([^<>]*)>")

_LAUNCHES = frozenset(
    {
        "create_hyper_parameter_tuning_job",
        "create_training_job",
        "fit",
        "train",
        "update_training_job",
        "upsert",
    }
)
"""Methods that start training. On an unknown value, `muster import` would miss their jobs."""


def unknown_origin(text: str) -> str | None:
    """Return the origin of an unknown value inside a text; None if there is none."""
    match = _MARK.search(text)
    return match[1] if match else None


class Unknown:
    """An object of the SDK or boto3 that is unrelated to training: it supports every operation, and has no value.

    `origin` is the expression from which the script got it.
    """

    def __init__(self, recorder: Recorder, origin: str) -> None:
        vars(self).update(_recorder=recorder, _origin=origin)

    @property
    def origin(self) -> str:
        return str(vars(self)["_origin"])

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._next(f".{name}")

    def __setattr__(self, name: str, value: object) -> None:
        """Ignore attributes of an unknown value."""

    def __call__(self, *_: object, **__: object) -> Unknown:
        method = self.origin.rpartition(".")[2]
        if method in _LAUNCHES or self.origin.endswith("TrainingJob.create"):
            raise Unsupported(
                f"{self.origin}() starts something that `muster import` does not support; it supports Estimator, "
                "PyTorch, TensorFlow and HuggingFace of SDK 2, and ModelTrainer of SDK 3"
            )
        if method[:1].islower():  # creating an object sends no request, only its methods do
            vars(self)["_recorder"].warn(f"{self.origin}() is skipped: muster imports only training jobs")
        return self._next("()")

    def __getitem__(self, key: object) -> Unknown:
        return self._next(f"[{key!r}]")

    def __setitem__(self, key: object, value: object) -> None:
        """Ignore entries of an unknown value."""

    def __iter__(self) -> Iterator[Unknown]:
        return iter(())

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> object:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: no resource was opened."""

    def __add__(self, other: str) -> str:
        return f"{self}{other}"

    def __radd__(self, other: str) -> str:
        return f"{other}{self}"

    def __str__(self) -> str:
        return f"<unknown: {re.sub('[<>]', '', self.origin)}>"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        # a script may derive its own serializer from the SDK's
        return (object,)

    def _next(self, step: str) -> Unknown:
        return Unknown(vars(self)["_recorder"], self.origin + step)
