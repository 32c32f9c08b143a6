"""A module and a line in the table add a new launcher to a real agent."""

import io
import zipfile
from pathlib import Path

from muster.render.agent_archive import build_agent_archive
from muster_worker.contract.schema import RankState
from support import greeting_launcher
from support.agent_world import AgentWorld

REGISTRY = "muster_worker/launchers/registry.py"
LINE = '    "greeting": "muster_worker.launchers.greeting",\n'


def archive_with_launcher() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(build_agent_archive())) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            new.writestr(name, text.replace("MODULES = {\n", f"MODULES = {{\n{LINE}") if name == REGISTRY else text)
        new.write(str(greeting_launcher.__file__), "muster_worker/launchers/greeting.py")
    return buffer.getvalue()


def test_a_launcher_is_a_module_and_a_line(world: AgentWorld, tmp_path: Path) -> None:
    world.pack().write_bytes(archive_with_launcher())
    written = tmp_path / "rank"
    world.make_plan("sh", "-c", f"echo $RANK of $WORLD_SIZE > {written}", launcher="greeting", launcher_args=("ranks",))
    world.launch()
    report = world.wait_ended()
    assert (report.ranks[0].state, report.ranks[0].exit_code) == (RankState.EXITED, 0)
    assert report.launcher is not None
    assert (report.launcher.name, report.launcher.last_lines) == ("greeting", ("hello ranks",))
    assert written.read_text() == "0 of 1\n"
