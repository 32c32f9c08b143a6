"""Checks the rows of a long table in one test, which costs a tenth of a test for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Row = TypeVar("Row")

MAX_NAME_CHARACTERS = 200


def check_rows(rows: Iterable[Row], check: Callable[[Row], None]) -> None:
    """Check all rows, and fail with each wrong row and its error. A table without rows fails, too."""
    count, failures = 0, list[str]()
    for row in rows:
        count += 1
        try:
            check(row)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the test fails with it below
            failures.append(f"{repr(row)[:MAX_NAME_CHARACTERS]}: {type(error).__name__}: {error}")
    assert count, "the table has no rows"
    assert not failures, "\n".join([f"{len(failures)} of {count} rows are wrong:", *failures])
