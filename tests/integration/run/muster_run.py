"""A real `muster run`, as a user starts it: small jobs, real processes, real signals."""

import json
import os
import pathlib
import pty
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from support.marked_processes import find_marked_processes, wait_for_exit
from support.muster_process import END_SECONDS, MUSTER, MusterProcess

MARK = "TEST_MARK"

OUT = '"$SM_OUTPUT_DIR"'
"""The run's output folder, in a shell line."""


def sh(line: str) -> list[str]:
    """Return a command that runs a shell line."""
    return ["sh", "-c", line]


def write_job(folder: pathlib.Path, command: list[str], name: str = "tiny", **spec: object) -> pathlib.Path:
    """Return a job of 2 x 2 ranks with the launcher `direct`, unless `spec` sets another."""
    document = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name},
        "spec": {"nodes": 2, "procsPerNode": 2, "launcher": {"direct": {}}, "command": command, **spec},
    }
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(document))
    return path


@dataclass
class Started:
    """A running `muster run`. `mark` identifies its ranks and agents on the machine."""

    process: subprocess.Popen[bytes]
    folder: pathlib.Path
    stdout_file: pathlib.Path
    stderr_file: pathlib.Path
    mark: str = field(default="")

    def wait(self, seconds: float = END_SECONDS) -> int:
        return self.process.wait(timeout=seconds)

    @property
    def stdout(self) -> str:
        return self.stdout_file.read_text()

    @property
    def stderr(self) -> str:
        return self.stderr_file.read_text()

    def await_files(self, pattern: str, count: int, seconds: float = 60) -> None:
        """Wait until the ranks have written `count` files into the run's output."""
        await_true(lambda: len(list((self.folder / "output").glob(pattern))) >= count, seconds, lambda: self.stderr)

    def agents(self) -> list[int]:
        """Return the process ids of the run's agents and their guardians."""
        return [
            pid
            for pid, line in find_marked_processes(f"{MARK}={self.mark}").items()
            if "agent/__main__.py node " in line
        ]

    def left(self, seconds: float = 20.0) -> list[str]:
        """Command lines of the run's processes that still run after `seconds`; returns at once when there are none."""
        return wait_for_exit(f"{MARK}={self.mark}", seconds)


def start(
    folder: pathlib.Path,
    job: pathlib.Path,
    *options: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> Started:
    """Start `muster run -f job` with its outputs in files."""
    run = _prepare(folder)
    with run["stdout"].open("wb") as stdout, run["stderr"].open("wb") as stderr:
        process = MusterProcess(
            ["run", "-f", str(job), "--dir", str(run["out"]), *options],
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=_environment(run["mark"].name, env),
        )
    if stdin is not None:
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
    return _remember(Started(process, run["out"], run["stdout"], run["stderr"], run["mark"].name))


def run(folder: pathlib.Path, job: pathlib.Path, *options: str, env: Mapping[str, str] | None = None) -> Started:
    """Run it to its end."""
    started = start(folder, job, *options, env=env)
    started.wait()
    return started


_STARTED: list[Started] = []


def _remember(started: Started) -> Started:
    _STARTED.append(started)
    return started


def list_started() -> Sequence[Started]:
    """Return the runs that have started and that `end` has not ended."""
    return tuple(_STARTED)


def end(runs: Iterable[Started]) -> None:
    """Kill the remaining processes of a failed test; its ranks end with them."""
    for started in runs:
        _STARTED.remove(started)
        started.process.kill()
        started.process.wait()


@dataclass
class OnTerminal:
    """A `muster run` on its own terminal, as its foreground job."""

    started: Started
    terminal: int

    def press(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def read_until(self, text: str, seconds: float = 60) -> str:
        """Return the terminal's output up to and including `text`."""
        shown = b""
        until = time.monotonic() + seconds
        while text.encode() not in shown and time.monotonic() < until:
            try:
                shown += os.read(self.terminal, 65536)
            except OSError:
                break  # the run ended and closed its side
        return shown.decode("utf-8", "replace")


def start_on_terminal(folder: pathlib.Path, job: pathlib.Path, *options: str) -> OnTerminal:
    """Start `muster run` with a pseudo-terminal as its controlling terminal and all its streams."""
    run = _prepare(folder)
    terminal, inner = pty.openpty()
    # a session leader that opens a terminal gets it as its controlling terminal: then Ctrl-C is a signal
    process = subprocess.Popen(
        [
            *("sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(inner)),
            *(str(MUSTER), "run", "-f", str(job), "--dir", str(run["out"]), *options),
        ],
        env=_environment(run["mark"].name, {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}),
        start_new_session=True,
    )
    started = _remember(Started(process, run["out"], run["stdout"], run["stderr"], run["mark"].name))
    await_true(lambda: process.poll() is not None or _is_muster(process.pid), 10)
    os.close(inner)
    return OnTerminal(started, terminal)


def _is_muster(pid: int) -> bool:
    # a process in the middle of exec has no command line
    program = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2]
    return program == [os.fsencode(MUSTER)]


def await_true(condition: Callable[[], bool], seconds: float, value: Callable[[], str] = str) -> None:
    """Poll: other processes send no events about this."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"did not happen within {seconds} s; {value()}"
        time.sleep(0.02)


def _prepare(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    name = f"run-{uuid.uuid4().hex}"
    return {
        "out": folder / name,
        "stdout": folder / f"{name}.stdout",
        "stderr": folder / f"{name}.stderr",
        "mark": pathlib.Path(name),
    }


def _environment(mark: str, env: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, "VIRTUAL_ENV": sys.prefix, "PYTHONUNBUFFERED": "1", MARK: mark, **(env or {})}
