"""Fixtures of the tests of `muster import`."""

from support.import_runs import desk

__all__ = ["desk"]
