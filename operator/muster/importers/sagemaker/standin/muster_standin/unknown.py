"""Values that only AWS could give: they may be passed around, and never end up in a job's file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .recorder import Recorder
from .refused import Refused

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
"""Methods that start training. Called on something unknown they would be jobs that are not imported."""


def unknown_origin(text: str) -> str | None:
    """Where the unknown part of a text comes from."""
    match = _MARK.search(text)
    return match[1] if match else None


class Unknown:
    """Something of the SDK's or of boto3's that isn't about training: takes any use, and has no value.

    `origin` says in code how the script came by it.
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
        """A setting of something that isn't there."""

    def __call__(self, *_: object, **__: object) -> Unknown:
        method = self.origin.rpartition(".")[2]
        if method in _LAUNCHES or self.origin.endswith("TrainingJob.create"):
            raise Refused(
                f"{self.origin}() starts something that muster import doesn't know; it knows Estimator, PyTorch, "
                "TensorFlow and HuggingFace of SDK 2, and ModelTrainer of SDK 3"
            )
        if method[:1].islower():  # what a class makes, only its methods would send
            vars(self)["_recorder"].warn(f"{self.origin}() is left out: only training jobs are imported")
        return self._next("()")

    def __getitem__(self, key: object) -> Unknown:
        return self._next(f"[{key!r}]")

    def __setitem__(self, key: object, value: object) -> None:
        """An entry of something that isn't there."""

    def __iter__(self) -> Iterator[Unknown]:
        return iter(())

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> object:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was opened."""

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
