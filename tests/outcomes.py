"""A pytest plug-in: `--outcomes=FILE` writes how each test ended, a line each, for the list at the end of a run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

RECORDER = "outcomes-recorder"
"""Its name among pytest's plug-ins."""

ERROR_LINES = 4
ERROR_WIDTH = 300


@dataclass(frozen=True)
class Outcome:
    """How a test ended, or one of its parts that failed. `error` is the first lines of what went wrong."""

    test: str
    passed: bool
    error: tuple[str, ...] = ()


Report: TypeAlias = pytest.TestReport | pytest.CollectReport


class Recorder:
    """Writes the outcomes of a session into a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test's setup, call or teardown has ended."""
        if report.failed:
            where = report.nodeid if report.when == "call" else f"{report.nodeid} (at {report.when})"
            self.write(Outcome(where, passed=False, error=first_lines(report.longreprtext)))
        elif report.when == "call" and report.passed:
            self.write(Outcome(report.nodeid, passed=True))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file's tests have been looked for."""
        if report.failed:
            self.write(Outcome(report.nodeid, passed=False, error=first_lines(report.longreprtext)))

    def write(self, outcome: Outcome) -> None:
        """Add one."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Have the option."""
    parser.addoption("--outcomes", metavar="FILE", type=Path, help="write how each test ended to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Record, in the process that hears of all tests."""
    file = config.getoption("--outcomes")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(file), RECORDER)


def read(file: Path) -> tuple[Outcome, ...]:
    """What was written to a file; nothing when the session did not come so far."""
    if not file.exists():
        return ()
    written = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return tuple(Outcome(each["test"], each["passed"], tuple(each["error"])) for each in written)


def first_lines(text: str) -> tuple[str, ...]:
    """The lines that pytest marks as the error; the last ones where it marks none."""
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [text for line in lines if line.startswith("E ") and (text := line[1:].strip())]
    return tuple(line[:ERROR_WIDTH] for line in (marked[:ERROR_LINES] or lines[-ERROR_LINES:]))
