"""The package's name on an index, where `muster` is taken. The command and the import package are called `muster`."""

from __future__ import annotations

DISTRIBUTION = "muster-training"


def get_version() -> str:
    """Return the installed package's version."""
    from importlib.metadata import version as installed  # noqa: PLC0415 - only two of the commands need it

    return installed(DISTRIBUTION)
