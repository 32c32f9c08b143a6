"""A pytest plug-in: each run has its own temporary folder, which must be empty at the end.

Programs that a test kills leave files in TMPDIR. A run removes its folder at the end, so that the machine's temporary
folder stays clean. Tests that kill such programs on purpose use `may_leave_temporary_files`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Protocol

import pytest

from outcomes import RECORDER, Outcome, Recorder

OF_PYTEST = "t"
"""The folder of `tmp_path`, which pytest empties itself. The names are short because paths of sockets must be short."""

OF_PROGRAMS = ("torchinductor_", "torchelastic_", "ompi.", "prted.", "pmix", "hydra_", "pymp-")
"""Prefixes of what torch, MPI and multiprocessing create there, and leave when they are killed. It is removed with the
run's folder.
"""

SHARED = "shared-"
"""The prefix of folders that all tests of a process share."""

WORKERS = re.compile(r"gw\d+")
"""The folders of the processes that pytest-xdist starts."""

LEFT = "left in the temporary folder"
"""The key under which a worker reports remaining files to the process that started it."""

FOLDER = pytest.StashKey[Path]()
FAILED = pytest.StashKey[bool]()
IN_WORKERS = pytest.StashKey[list[str]]()


class Node(Protocol):
    """A pytest-xdist worker, as the process that started it sees it."""

    config: pytest.Config
    workeroutput: dict[str, list[str]]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Create the folder: a worker's folder is inside that of the process that started it."""
    # Don't use the variable PYTEST_XDIST_WORKER: a pytest that a worker's test starts inherits it.
    if not hasattr(config, "workerinput"):
        folder = Path(tempfile.mkdtemp(prefix="m-"))
        if config.option.basetemp is None:
            config.option.basetemp = folder / OF_PYTEST
        # Run after multiprocessing has removed its own folder there, which has priority -100.
        Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=-200)
    else:
        folder = Path(os.environ["TMPDIR"], os.environ["PYTEST_XDIST_WORKER"])
        folder.mkdir()
    config.stash[FOLDER] = folder
    use(folder)


def use(folder: Path) -> None:
    """Make this process and its children use this folder for temporary files."""
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None


def left_in(folder: Path) -> list[str]:
    """List the content of a folder, without files of pytest itself, of torch, of MPI and of the Kubernetes client, and
    without what tests share.
    """
    names = {entry.name for entry in folder.iterdir()} - {OF_PYTEST} - of_kubernetes()
    return sorted(name for name in names if not name.startswith((*OF_PROGRAMS, SHARED)))


def of_kubernetes() -> set[str]:
    """List the files with keys and certificates of kubeconfigs: the client's library removes them at exit."""
    library = sys.modules.get("kubernetes.aio.config.kube_config")
    return {Path(path).name for path in getattr(library, "_temp_files", {}).values()}


@pytest.fixture(autouse=True)
def leaves_no_temporary_files(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves files in the temporary folder, and remove them, so that one problem is listed once."""
    folder = request.config.stash[FOLDER]
    before = left_in(folder)
    yield
    left = [name for name in left_in(folder) if name not in before]
    for name in left:
        remove(folder / name)
    # A test that fails may stop before it cleans up. Its own error says why.
    if not request.node.stash.get(FAILED, False):
        assert not left, f"left in the temporary folder: {', '.join(left)}"


def remove(path: Path) -> None:
    """Remove a file or a folder with its content."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember in a test's stash that it failed."""
    report = yield
    if call.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def may_leave_temporary_files(
    leaves_no_temporary_files: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Give a test that kills programs its own temporary folder, and remove it with all remaining files."""
    del leaves_no_temporary_files  # the check runs after this folder has been removed
    own = Path(tempfile.mkdtemp(prefix="k-", dir=request.config.stash[FOLDER]))
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield
    shutil.rmtree(own)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Node) -> None:
    """Record a worker's remaining files, in the process that started it. A crashed worker has sent none."""
    if hasattr(node, "workeroutput"):
        found = node.config.stash.setdefault(IN_WORKERS, list[str]())
        found.extend(node.workeroutput.get(LEFT, []))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with remaining files in its temporary folder after its last test.

    Each worker checks its own folder: only the worker knows which files its libraries remove when it exits.
    """
    folder = session.config.stash[FOLDER]
    workeroutput: dict[str, list[str]] | None = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput[LEFT] = left_in(folder)
        return
    left = [name for name in left_in(folder) if not WORKERS.fullmatch(name)]
    in_workers: list[str] = session.config.stash.get(IN_WORKERS, [])
    left += in_workers
    if left:
        why = f"left in the temporary folder: {', '.join(left)}"
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        recorder = session.config.pluginmanager.get_plugin(RECORDER)
        if isinstance(recorder, Recorder):
            recorder.write(Outcome("the whole run", passed=False, error=(why,)))
        sys.stdout.write(f"\n{why}\n")
