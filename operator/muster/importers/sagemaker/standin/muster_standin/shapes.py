"""Configuration values that a launch script passes to estimators and trainers: classes that only keep arguments."""

from __future__ import annotations

from collections.abc import Sequence

from .arguments import bound


class Shape:
    """A value whose attributes are its arguments; None for each that the script did not set."""

    names: tuple[str, ...] = ()
    positional = True

    def __init__(self, *positional: object, **named: object) -> None:
        owner = type(self).__name__
        if positional and not self.positional:
            bound(owner, (), positional, {})
        vars(self).update(_given=bound(owner, self.names, positional, named))

    def given(self) -> dict[str, object]:
        """The arguments by name, with their current values."""
        return dict(vars(self)["_given"])

    def __getattr__(self, name: str) -> object:
        if name not in self.names:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return vars(self)["_given"].get(name)

    def __setattr__(self, name: str, value: object) -> None:
        vars(self)["_given"].update(bound(type(self).__name__, self.names, (), {name: value}))


def shape(name: str, names: Sequence[str], *, positional: bool) -> type[Shape]:
    """A class of values called `name`, with arguments called `names` in this order."""
    return type(name, (Shape,), {"names": tuple(names), "positional": positional})
