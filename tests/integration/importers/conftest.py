"""What the tests of `muster import` share."""

from import_runs import desk

__all__ = ["desk"]
