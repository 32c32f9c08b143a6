"""muster started in unusual ways: without its standard streams, on a full disk, interrupted during its imports."""

import pathlib
import signal
import subprocess
import sys

import pytest

from integration.run.muster_run import start, write_job
from support.muster_process import MUSTER


def shell(script: str, cwd: pathlib.Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", script, str(MUSTER)],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "closed",
    [*(pytest.param(one, marks=pytest.mark.long) for one in ("<&-", ">&-", "2>&-")), "<&- >&- 2>&-"],
)
def test_a_run_needs_no_standard_streams(tmp_path: pathlib.Path, closed: str) -> None:
    # Each rank's standard input is empty too, even if muster has opened another file with descriptor 0.
    write_job(tmp_path, ["sh", "-c", 'test -z "$(cat)"'])
    run = shell(f'"$0" run -f tiny.yaml --dir out --logs -o json {closed}', tmp_path)
    assert (run.returncode, "Traceback" in run.stderr) == (0, False), run.stderr


def test_reading_a_standard_input_that_is_not_there(tmp_path: pathlib.Path) -> None:
    for command in ("run", "validate", "render"):
        done = shell(f'"$0" {command} -f - <&-', tmp_path)
        assert done.returncode in {1, 2}
        assert "standard input: found no DistributedTrainingJob" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_output_that_can_not_be_written_is_a_sentence(tmp_path: pathlib.Path) -> None:
    done = shell('"$0" crd >/dev/full', tmp_path)
    assert (done.returncode, done.stderr) == (1, "muster: No space left on device\n")


def test_a_folder_that_can_not_be_made_is_a_sentence(tmp_path: pathlib.Path) -> None:
    write_job(tmp_path, ["true"])
    done = shell('"$0" run -f tiny.yaml --dir tiny.yaml', tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"muster: {tmp_path}/tiny.yaml: File exists"


def test_a_folder_belongs_to_one_run_at_a_time(tmp_path: pathlib.Path) -> None:
    job = write_job(tmp_path, ["sh", "-c", 'touch "$SM_OUTPUT_DIR/$RANK"; exec sleep 60'])
    first = start(tmp_path, job)
    first.await_files("*", 4)
    second = shell(f'"$0" run -f tiny.yaml --dir {first.folder}', tmp_path)
    first.process.send_signal(signal.SIGINT)
    assert first.wait() == 130
    assert second.returncode == 2
    assert second.stderr.splitlines()[-1] == (
        f"muster: {first.folder}: another run uses this folder now; choose another with --dir"
    )


def test_ctrl_c_while_muster_loads_is_no_stack_trace(tmp_path: pathlib.Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = shell('"$0" --version', tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (130, "")


def test_a_command_waits_for_no_other_commands_libraries(tmp_path: pathlib.Path) -> None:
    loaded = "import muster.cli.commands, sys; print({'pydantic', 'yaml', 'rich', 'aiohttp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
