"""Programs of the agent's archive that other programs start: without a shell if possible."""

import subprocess
import sys
from pathlib import Path

import pytest

from muster_worker.machine.executable import write_executable

ARGUMENTS = ("one", "it's", "caf\u00e9 \udcff", "", "a\\b\n")
ENTRY = """
import os
def main(arguments):
    os.write(1, os.fsencode('|'.join(arguments)))
    return 7
"""


def archive_in(folder: Path) -> str:
    """Return a folder that Python runs like an archive."""
    package = folder / "muster_worker"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "entry.py").write_text(ENTRY)
    (folder / "__main__.py").write_text(
        "import sys\nfrom muster_worker.entry import main\nsys.exit(main(sys.argv[1:]))"
    )
    return str(folder)


@pytest.mark.parametrize(
    ("folder", "first_line"),
    [("bin", b" -IS\n"), ("a folder", b"#!/bin/sh\n"), ("b" * 120, b"#!/bin/sh\n")],
    ids=["plain", "with a blank", "too long"],
)
@pytest.mark.parametrize("archive", ["agent", "it's caf\u00e9"])
def test_it_runs_with_its_own_arguments_and_the_caller_s(
    tmp_path: Path, folder: str, first_line: bytes, archive: str
) -> None:
    python = tmp_path / folder / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    program = tmp_path / "program"
    write_executable(str(program), str(python), archive_in(tmp_path / archive), ARGUMENTS)
    assert program.read_bytes().splitlines(keepends=True)[0].endswith(first_line)
    # the caller's environment and folder have no effect
    elsewhere = {"PYTHONPATH": str(tmp_path / "none"), "PYTHONHOME": str(tmp_path)}
    done = subprocess.run([program, "-u", "x y"], check=False, capture_output=True, env=elsewhere, cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "|".join([*ARGUMENTS, "-u", "x y"]).encode("utf-8", "surrogateescape")


def test_only_its_owner_may_execute_it_and_an_earlier_one_is_removed(tmp_path: Path) -> None:
    program = tmp_path / "program"
    write_executable(str(program), sys.executable, "/archive", ("rank", "x" * 1000))
    write_executable(str(program), sys.executable, "/archive", ("rank",))
    assert program.stat().st_mode & 0o777 == 0o700
    assert program.read_text().endswith("main(['rank'] + sys.argv[1:]))\n")
