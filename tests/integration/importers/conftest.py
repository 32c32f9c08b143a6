"""Fixtures of the tests of `muster import`."""

from support.import_runs import import_folder

__all__ = ["import_folder"]
