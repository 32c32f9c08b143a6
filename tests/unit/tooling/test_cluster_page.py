"""docs/cluster.md lists which tests are skipped on a cluster that is not ours."""

import re
import subprocess
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "cluster.md"
FOLDER = "tests/cluster"


def files_with_skipped_tests() -> set[Path]:
    """Files with tests that are marked so when they are collected."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "ours", FOLDER]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    files = re.findall(rf"^{FOLDER}/(\S+\.py)::", done.stdout, re.MULTILINE)
    return {Path(file) for file in files}


def listed(files: Iterable[Path]) -> list[str]:
    """As the page lists them: a line for each folder."""
    by_folder = groupby(sorted(files, key=lambda file: (str(file.parent), file.name)), lambda file: file.parent)
    return [
        f"- `{FOLDER if folder == Path() else folder}`: {', '.join(f'`{file.name}`' for file in found)}"
        for folder, found in by_folder
    ]


# It collects all tests of the cluster, which takes seconds.
@pytest.mark.long
def test_the_page_lists_the_files_with_tests_that_are_skipped_on_other_clusters() -> None:
    _, _, after = PAGE.read_text(encoding="utf-8").partition("are skipped: all tests or some")
    shown = after[after.index("- ") :].partition("\n\n")[0].replace("\n  ", " ").splitlines()
    assert shown == listed(files_with_skipped_tests())
