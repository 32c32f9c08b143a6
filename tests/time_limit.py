"""A pytest plug-in: once the time in TESTS_DEADLINE has come, the remaining tests are not run, and the end of the
output lists their files.
"""

import os
import time
from collections import Counter
from pathlib import Path

import pytest

from problems import PROBLEMS_FILE

DEADLINE = "TESTS_DEADLINE"
"""The variable with the time, in seconds since 1970. Without it, all tests run. It has no muster prefix, because
muster does not read it.
"""

TIME_IS_UP = f"the time of this run is up ({DEADLINE})"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip the test after the deadline, before its fixtures are set up."""
    if time.time() > float(os.environ.get(DEADLINE, "inf")):
        pytest.skip(TIME_IS_UP)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the files with tests that were not run, here and in the file that several commands share."""
    skipped = [each for each in terminalreporter.stats.get("skipped", []) if TIME_IS_UP in str(each.longrepr)]
    # With xdist, each worker would list its tests, too.
    if not skipped or hasattr(config, "workerinput"):
        return
    files = Counter(each.nodeid.partition("::")[0] for each in skipped)
    lines = [f"NOT RUN {file}: {count} tests" for file, count in sorted(files.items())]
    text = "\n".join((*lines, f"{len(skipped)} NOT RUN: {TIME_IS_UP}")) + "\n"
    terminalreporter.write(text)
    if file := os.environ.get(PROBLEMS_FILE):
        with Path(file).open("a", encoding="utf-8") as shared:
            shared.write(text)
