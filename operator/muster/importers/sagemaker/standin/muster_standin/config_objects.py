"""Classes of configuration objects for estimators and trainers. The objects only store their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from .arguments import bind_arguments


class ConfigObject:
    """An object whose attributes are its arguments. Arguments that the script did not set are None."""

    names: tuple[str, ...] = ()
    positional = True

    def __init__(self, *positional: object, **keywords: object) -> None:
        callable_name = type(self).__name__
        if positional and not self.positional:
            bind_arguments(callable_name, (), positional, {})
        vars(self).update(_arguments=bind_arguments(callable_name, self.names, positional, keywords))

    def get_arguments(self) -> dict[str, object]:
        """Return the arguments by name, with their current values."""
        return dict(vars(self)["_arguments"])

    def __getattr__(self, name: str) -> object:
        if name not in self.names:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return vars(self)["_arguments"].get(name)

    def __setattr__(self, name: str, value: object) -> None:
        vars(self)["_arguments"].update(bind_arguments(type(self).__name__, self.names, (), {name: value}))


def create_config_class(name: str, names: Sequence[str], *, positional: bool) -> type[ConfigObject]:
    """Create the class `name`, whose parameters are `names` in this order."""
    return type(name, (ConfigObject,), {"names": tuple(names), "positional": positional})
