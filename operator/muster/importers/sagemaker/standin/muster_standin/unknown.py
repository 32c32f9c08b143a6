"""Values that only AWS could return. The script may use them, but a job's file can't contain them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .errors import UnsupportedOperation
from .recorder import Recorder

_UNKNOWN_PATTERN = re.compile(r"<unknown: ([^<>]*)>")

_LAUNCH_METHODS = frozenset(
    {
        "create_hyper_parameter_tuning_job",
        "create_training_job",
        "fit",
        "train",
        "update_training_job",
        "upsert",
    }
)
"""Methods that start training. `muster import` can't record their jobs if the object is unknown."""


def find_unknown_origin(text: str) -> str | None:
    """Return the origin of the unknown value that a text contains; None if it contains none."""
    match = _UNKNOWN_PATTERN.search(text)
    return match[1] if match else None


class UnknownValue:
    """An object of the SDK or boto3 that is unrelated to training. It supports every operation and has no value.

    `origin` is the script's expression that returned the object.
    """

    def __init__(self, recorder: Recorder, origin: str) -> None:
        vars(self).update(_recorder=recorder, _origin=origin)

    @property
    def origin(self) -> str:
        return str(vars(self)["_origin"])

    def __getattr__(self, name: str) -> UnknownValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._derive(f".{name}")

    def __setattr__(self, name: str, value: object) -> None:
        """Ignore the attribute."""

    def __call__(self, *_: object, **__: object) -> UnknownValue:
        method = self.origin.rpartition(".")[2]
        if method in _LAUNCH_METHODS or self.origin.endswith("TrainingJob.create"):
            raise UnsupportedOperation(
                f"`muster import` does not support {self.origin}(); it supports Estimator, "
                "PyTorch, TensorFlow and HuggingFace of SDK 2, and ModelTrainer of SDK 3"
            )
        if method[:1].islower():  # other names are classes, and creating an object sends no request
            vars(self)["_recorder"].warn(f"muster skips {self.origin}(), because it imports only training jobs")
        return self._derive("()")

    def __getitem__(self, key: object) -> UnknownValue:
        return self._derive(f"[{key!r}]")

    def __setitem__(self, key: object, value: object) -> None:
        """Ignore the entry."""

    def __iter__(self) -> Iterator[UnknownValue]:
        return iter(())

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> object:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because there is no resource to close."""

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
        # A script may derive a class from a class of the SDK, such as a serializer.
        return (object,)

    def _derive(self, suffix: str) -> UnknownValue:
        return UnknownValue(vars(self)["_recorder"], self.origin + suffix)
