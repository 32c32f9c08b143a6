import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from muster.render.agent_archive import build_agent_archive
from muster_worker.agent.unpacked_archive import unpack


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "agent.pyz"
    path.write_bytes(build_agent_archive())
    return path


def test_what_ranks_import_is_compiled(archive: Path, tmp_path: Path) -> None:
    unpack(str(archive), str(tmp_path / "agent"))
    for module in ("entry", "rank/wrapper", "rank/hook", "site/sitecustomize"):
        assert Path(cache_from_source(str(tmp_path / "agent" / "muster_worker" / f"{module}.py"))).exists()


@pytest.mark.parametrize("program", ["agent.pyz", "agent", "agent/__main__.py"])
def test_the_agent_runs_packed_and_unpacked(archive: Path, tmp_path: Path, program: str) -> None:
    unpack(str(archive), str(tmp_path / "agent"))
    command = [sys.executable, "-I", "-S", str(tmp_path / program), "rank", "--", "echo", "here"]
    done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)
    assert done.stdout == "here\n"


def test_a_second_agent_replaces_the_first_one_s_files(archive: Path, tmp_path: Path) -> None:
    module = tmp_path / "agent" / "muster_worker" / "exit_codes.py"
    unpack(str(archive), str(tmp_path / "agent"))
    before = module.read_text()
    module.write_text("an older version")
    unpack(str(archive), str(tmp_path / "agent"))
    assert module.read_text() == before


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_a_file_that_is_no_archive_is_an_os_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "agent.pyz").write_bytes(content)
    with pytest.raises(OSError, match=r"agent\.pyz"):
        unpack(str(tmp_path / "agent.pyz"), str(tmp_path / "agent"))
