"""A pytest plug-in: each run has a temporary folder of its own, where nothing may be left.

Programs that a test kills leave files where TMPDIR names. A run takes its folder away in the end, so that the machine's
keeps nothing of them; a test that kills such programs on purpose says so by `may_leave_temporary_files`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Protocol

import pytest

from outcomes import RECORDER, Outcome, Recorder

OF_PYTEST = "t"
"""Where `tmp_path` is; pytest has it emptied itself. The names are short because sockets' paths have to be."""

OF_PROGRAMS = ("torchinductor_", "torchelastic_", "ompi.", "prted.", "pmix", "hydra_", "pymp-")
"""What torch, MPI and multiprocessing keep there, or leave when they are killed. It goes with the run's folder."""

WORKERS = re.compile(r"gw\d+")
"""The folders of the processes that pytest-xdist starts."""

LEFT = "left in the temporary folder"
"""What a worker says under this key to the process that started it."""

FOLDER = pytest.StashKey[Path]()
IN_WORKERS = pytest.StashKey[list[str]]()


class Node(Protocol):
    """A process that pytest-xdist started, as the one that started it sees it."""

    config: pytest.Config
    workeroutput: dict[str, list[str]]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the folder: a worker's lies in that of the process that started it."""
    # Not by the variable PYTEST_XDIST_WORKER: a pytest that a worker's test starts has that, too.
    if not hasattr(config, "workerinput"):
        folder = Path(tempfile.mkdtemp(prefix="m-"))
        if config.option.basetemp is None:
            config.option.basetemp = folder / OF_PYTEST
        # After multiprocessing has removed its own folder in it, which has priority -100.
        Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=-200)
    else:
        folder = Path(os.environ["TMPDIR"], os.environ["PYTEST_XDIST_WORKER"])
        folder.mkdir()
    config.stash[FOLDER] = folder
    use(folder)


def use(folder: Path) -> None:
    """Let this process and those that it starts put their temporary files there."""
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None


def left_in(folder: Path) -> list[str]:
    """What is in a folder, but for files of pytest itself, of torch and MPI, and of the Kubernetes client."""
    names = {entry.name for entry in folder.iterdir()} - {OF_PYTEST} - of_kubernetes()
    return sorted(name for name in names if not name.startswith(OF_PROGRAMS))


def of_kubernetes() -> set[str]:
    """The keys and certificates of kubeconfigs: the client's library writes them to files, and removes them at exit."""
    library = sys.modules.get("kubernetes.aio.config.kube_config")
    return {Path(path).name for path in getattr(library, "_temp_files", {}).values()}


@pytest.fixture(autouse=True)
def leaves_no_temporary_files(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves files in the temporary folder."""
    folder = request.config.stash[FOLDER]
    before = left_in(folder)
    yield
    left = [name for name in left_in(folder) if name not in before]
    assert not left, f"left in the temporary folder: {', '.join(left)}"


@pytest.fixture
def may_leave_temporary_files(
    leaves_no_temporary_files: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Give a test that kills programs a temporary folder of its own, which goes with all that they left there."""
    del leaves_no_temporary_files  # it looks when this folder has gone
    own = Path(tempfile.mkdtemp(prefix="k-", dir=request.config.stash[FOLDER]))
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield
    shutil.rmtree(own)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Node) -> None:
    """Take note of what a worker has found, in the process that started it. A worker that crashed has told nothing."""
    if hasattr(node, "workeroutput"):
        found = node.config.stash.setdefault(IN_WORKERS, list[str]())
        found.extend(node.workeroutput.get(LEFT, []))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that has left files in its temporary folder after its last test.

    Each worker looks in its own folder: only it knows which files its libraries remove when it exits.
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
