import importlib.metadata
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from muster.render.agent_archive import build_agent_archive
from muster_worker.agent.collector_client import compute_backoff
from muster_worker.agent.unpacked_archive import unpack
from muster_worker.contract.schema import UNUSABLE_PYTHON


def test_the_archive_is_the_same_every_time() -> None:
    first = build_agent_archive()
    build_agent_archive.cache_clear()
    assert build_agent_archive() == first


def test_the_archive_holds_the_agent_and_nothing_else() -> None:
    names = zipfile.ZipFile(io.BytesIO(build_agent_archive())).namelist()
    assert names[0] == "__main__.py"
    assert "muster_worker/contract/schema.py" in names
    assert "muster_worker/site/sitecustomize.py" in names
    metadata = {"muster_worker-0.dist-info/METADATA", "muster_worker-0.dist-info/entry_points.txt"}
    assert {name for name in names if not name.endswith(".py")} == metadata
    assert "muster_worker/archive_main.py" not in names


@pytest.mark.parametrize("is_unpacked", [True, False])
def test_lightning_finds_the_callback_in_the_archive(tmp_path: Path, *, is_unpacked: bool) -> None:
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(build_agent_archive())
    if is_unpacked:
        unpack(str(archive), str(tmp_path / "agent"))
    folder = tmp_path / "agent" if is_unpacked else archive
    [package] = importlib.metadata.distributions(path=[str(folder)])
    found = {entry.group: entry.load()() for entry in package.entry_points}
    # this process is no rank
    assert found == {"lightning.pytorch.callbacks_factory": [], "pytorch_lightning.callbacks_factory": []}


def started_with(tmp_path: Path, lacking: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Return the archive's agent on a Python without a module."""
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(build_agent_archive())
    program = f"import runpy, sys; sys.modules[{lacking!r}] = None; runpy.run_path(sys.argv[0], run_name='__main__')"
    start = f"import sys; sys.argv = sys.argv[1:]; {program}"
    command = [sys.executable, "-I", "-c", start, str(archive), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("module", ["ssl", "ctypes", "json"])
def test_a_python_without_needed_modules_is_reported_in_the_termination_log(tmp_path: Path, module: str) -> None:
    log = tmp_path / "termination-log"
    done = started_with(tmp_path, module, "node", "--termination-log", str(log))
    version = ".".join(map(str, sys.version_info[:2]))
    assert done.returncode == 69
    assert log.read_text() == f"{UNUSABLE_PYTHON}it is Python {version} without the module {module}"
    assert done.stderr == f"{log.read_text()}\n"


def test_what_is_no_agent_shows_what_went_wrong(tmp_path: Path) -> None:
    done = started_with(tmp_path, "resource", "rank", "--", "true")
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr


def test_backoff_grows_and_obeys_the_collector() -> None:
    waits = [compute_backoff(failures, 0.0, 0.5) for failures in range(12)]
    assert waits[0] == 0.1
    assert waits == sorted(waits)
    assert waits[-1] == 1.0
    assert compute_backoff(0, 30.0, 0.0) == 30.0
    assert compute_backoff(0, 1e9, 0.99) < 75.0
