"""The wrapper of a rank without an agent, on SageMaker: it reports to the log. `entry.py` starts it.

It runs as `python -I -S muster_entry.pyz log-rank -- COMMAND ARGS...`. It starts the command with the hook as its
child, relays its output, prints the rank's log lines (`log_line.py`) and exits as the child did. If reporting fails,
the command runs anyway.
"""

from __future__ import annotations

import os
import sys
import time

from muster_worker.rank import child, hook_environment, progress_file
from muster_worker.sagemaker.log_rank import user_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Thread
    from typing import List, Mapping, NoReturn, Optional, Sequence, Tuple

    from muster_worker.sagemaker.log_rank.output_relay import Relay
    from muster_worker.sagemaker.log_rank.reporter import LogReporter

DRAIN_SECONDS = 0.2
"""Time to read the last output after the rank's end. Leftover processes may write even longer."""


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the command after `--` in `arguments` and exit as it does."""
    command = list(arguments[arguments.index("--") + 1 :])
    child.open_standard_streams()
    signal_mask = child.block_signals()
    child.die_with_parent()
    environment = child.read_environment()
    began = time.time()
    folder = _folder()
    pipes = _pipes()
    try:
        started = child.start(command, _environment_with_hook(environment, folder), _writers(pipes), signal_mask)
    except child.CommandRefused as refusal:
        sys.stderr.write(f"muster: {refusal}\n")
        sys.stderr.flush()
        _remove(folder)
        os._exit(refusal.exit_code)
    for _, writer, _ in pipes:
        os.close(writer)
    # The command has started: the slow imports delay it no more.
    watch = _watch(environment, pipes, folder, started.pid, began)
    status = started.wait()
    watch.end(status, started.peak_bytes)
    _remove(folder)
    child.exit_like(status)


class _Watch:
    """The thread that relays output while the main thread waits for the command."""

    def __init__(self, relay: Relay, log_reporter: Optional[LogReporter]) -> None:
        from threading import Thread

        self._relay = relay
        self._log_reporter = log_reporter
        self._stopped, self._stop = os.pipe()
        self._thread: Thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self, status: int, peak_bytes: int) -> None:
        """Print the rest of the output and how the command ended."""
        ended_at = time.time()
        os.write(self._stop, b".")
        self._thread.join()
        self._relay.drain(DRAIN_SECONDS)
        if self._log_reporter is not None:
            self._log_reporter.end(status, ended_at, peak_bytes)
        # Keep relaying for leftover processes: SIGPIPE would kill them after closing their output.
        if self._relay.is_open and os.fork() == 0:
            self._relay.copy_rest()
            os._exit(0)

    def _run(self) -> None:
        log_reporter = self._log_reporter
        self._relay.run(self._stopped, lambda: 3600.0 if log_reporter is None else log_reporter.tick())


def _watch(
    environment: Mapping[str, str], pipes: Sequence[Tuple[int, int, int]], folder: Optional[str], pid: int, began: float
) -> _Watch:
    from muster_worker.sagemaker.log_rank import host_rank, output_relay, reporter

    relay = output_relay.Relay([(reader, target) for reader, _, target in pipes])
    log_reporter = None
    try:
        place = host_rank.place(environment)
        log_reporter = reporter.LogReporter(relay, place, _progress(folder) if folder else None, pid, began)
    except ValueError as error:
        sys.stderr.write(f"muster: this process' rank is unknown, so the log has no reports of it: {error!r}\n")
    return _Watch(relay, log_reporter)


def _pipes() -> List[Tuple[int, int, int]]:
    """(read end, write end, target) of each output. Outputs with the same target share a pipe, to keep their order."""
    targets = [1] if os.path.sameopenfile(1, 2) else [1, 2]
    return [(*os.pipe(), target) for target in targets]


def _writers(pipes: Sequence[Tuple[int, int, int]]) -> Tuple[int, int]:
    return pipes[0][1], pipes[-1][1]


def _environment_with_hook(environment: Mapping[str, str], folder: Optional[str]) -> Mapping[str, str]:
    archive = os.path.abspath(sys.argv[0])
    value = _restore_program(environment, archive)
    if folder is None:
        return value
    hooked = hook_environment.with_hook(value, archive, hook_environment.SCOPE_RANK)
    hooked[hook_environment.PROGRESS] = _progress(folder)
    return hooked


def _restore_program(environment: Mapping[str, str], archive: str) -> Mapping[str, str]:
    """The environment with the user's program, whose name is in a file beside the archive."""
    entry = os.path.splitext(archive)[0]
    try:
        with open(f"{entry}.program", encoding="utf-8") as file:
            program = file.read().strip()
    except OSError:
        return environment
    suffix = ".py" if program.endswith(".py") else ".sh"
    return user_program.restore(environment, os.path.basename(entry) + suffix, program)


def _folder() -> Optional[str]:
    """Create a folder for the rank's progress file; None if that is impossible."""
    for base in (os.environ.get("TMPDIR"), "/tmp", "/dev/shm"):  # noqa: S108 - mkdir makes it private or fails
        folder = os.path.join(base or "/var/tmp", f"muster-rank-{os.getpid()}-{time.time_ns()}")  # noqa: S108
        try:
            os.mkdir(folder, 0o700)
            progress_file.create(_progress(folder))
        except OSError:
            continue
        return folder
    return None


def _progress(folder: str) -> str:
    return os.path.join(folder, "progress")


def _remove(folder: Optional[str]) -> None:
    try:
        for name in os.listdir(folder) if folder else ():
            os.unlink(os.path.join(folder or "", name))
        if folder:
            os.rmdir(folder)
    except OSError:  # ignore a leftover of 4 KiB
        pass
