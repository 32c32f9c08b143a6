"""A pytest plug-in: `--outcomes=FILE` writes the result of each test, one per line, for the list at the end of
a run.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

RECORDER = "outcomes-recorder"
"""The plug-in's name in pytest."""

ERROR_LINES = 6
ERROR_WIDTH = 300


@dataclass(frozen=True)
class Outcome:
    """The result of a test, or of one of its phases that failed. `error` is the key lines of the error."""

    test: str
    passed: bool
    error: tuple[str, ...] = ()


Report: TypeAlias = pytest.TestReport | pytest.CollectReport


class Recorder:
    """Writes the results of a session into a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the end of a test's setup, call or teardown."""
        if report.failed:
            where = report.nodeid if report.when == "call" else f"{report.nodeid} (at {report.when})"
            self.write(Outcome(where, passed=False, error=key_lines(report.longreprtext)))
        elif report.when == "call" and report.passed:
            self.write(Outcome(report.nodeid, passed=True))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record the collection of a file's tests."""
        if report.failed:
            self.write(Outcome(report.nodeid, passed=False, error=key_lines(report.longreprtext)))

    def write(self, outcome: Outcome) -> None:
        """Append a result."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--outcomes", metavar="FILE", type=Path, help="write how each test ended to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder in the process that gets the reports of all tests."""
    file = config.getoption("--outcomes")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(file), RECORDER)


def read(file: Path) -> tuple[Outcome, ...]:
    """Read the results from a file; none if the session has ended before it wrote any."""
    if not file.exists():
        return ()
    written = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return tuple(Outcome(each["test"], each["passed"], tuple(each["error"])) for each in written)


def key_lines(text: str) -> tuple[str, ...]:
    """Return the first and last lines that pytest marks as the error, or the last lines if it marks none."""
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [text for line in lines if line.startswith("E ") and (text := line[1:].strip())]
    if len(marked) > ERROR_LINES:
        # A command's output can be the message. What went wrong is at its end.
        marked = [marked[0], *marked[1 - ERROR_LINES :]]
    return tuple(line[:ERROR_WIDTH] for line in (marked or lines[-ERROR_LINES:]))
