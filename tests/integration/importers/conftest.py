"""What the tests of `muster import` share."""

from support.import_runs import desk

__all__ = ["desk"]
