import io
import subprocess
import sys
import zipfile
from pathlib import Path

from muster.backends.local.agent_folder import write_agent_folder
from muster.render.agent_archive import build_agent_archive


def test_agents_share_compiled_modules(tmp_path: Path) -> None:
    write_agent_folder(tmp_path)
    with zipfile.ZipFile(io.BytesIO(build_agent_archive())) as archive:
        assert [name for name in archive.namelist() if (tmp_path / name).read_bytes() != archive.read(name)] == []
    command = [sys.executable, "-I", "-v", str(tmp_path / "__main__.py"), "node", "--help"]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    modules = [
        line for line in loaded.splitlines() if line.startswith("# code object from") and "muster_worker" in line
    ]
    assert modules
    assert [line for line in modules if ".pyc" not in line] == []
