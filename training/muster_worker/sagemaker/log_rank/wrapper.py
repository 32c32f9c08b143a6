"""The wrapper around a rank that nobody but a log hears: on SageMaker, where `entry.py` has put it.

It runs as `python -I -S muster_entry.pyz log-rank -- COMMAND ARGS...`, starts the command as its child with the hook in
it, passes its output on, prints what it does (`log_line.py`) and ends as the child ended. Whatever goes wrong with the
telling, the command runs.
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
    from muster_worker.sagemaker.log_rank.reporter import Teller

DRAIN_SECONDS = 0.2
"""How long the last output may take after the rank's end; what it left behind goes on writing after that, too."""


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the command of `arguments` (what follows `log-rank`) and end as it ends."""
    command = list(arguments[arguments.index("--") + 1 :])
    child.keep_standard_streams()
    signal_mask = child.hold_signals()
    child.die_with_parent()
    environment = child.own_environment()
    began = time.time()
    folder = _folder()
    pipes = _pipes()
    try:
        started = child.start(command, _hooked(environment, folder), _ends(pipes), signal_mask)
    except child.CommandRefused as refusal:
        sys.stderr.write(f"muster: {refusal}\n")
        sys.stderr.flush()
        _remove(folder)
        os._exit(refusal.exit_code)
    for _, writer, _ in pipes:
        os.close(writer)
    # from here on the command is under way: what follows costs it no time
    watch = _watch(environment, pipes, folder, started.pid, began)
    status = started.wait()
    watch.end(status, started.peak_bytes)
    _remove(folder)
    child.end_like(status)


class _Watch:
    """The thread that passes output on while the main one waits for the command."""

    def __init__(self, relay: Relay, teller: Optional[Teller]) -> None:
        from threading import Thread

        self._relay = relay
        self._teller = teller
        self._stopped, self._stop = os.pipe()
        self._thread: Thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self, status: int, peak_bytes: int) -> None:
        """The command is gone: print the last of it, and how it ended."""
        ended_at = time.time()
        os.write(self._stop, b".")
        self._thread.join()
        self._relay.drain(DRAIN_SECONDS)
        if self._teller is not None:
            self._teller.end(status, ended_at, peak_bytes)
        # what the command has started and left would be killed by its next word if we closed its output
        if self._relay.is_open and os.fork() == 0:
            self._relay.copy_rest()
            os._exit(0)

    def _run(self) -> None:
        teller = self._teller
        self._relay.run(self._stopped, lambda: 3600.0 if teller is None else teller.tick())


def _watch(
    environment: Mapping[str, str], pipes: Sequence[Tuple[int, int, int]], folder: Optional[str], pid: int, began: float
) -> _Watch:
    from muster_worker.sagemaker.log_rank import host_rank, output_relay, reporter

    relay = output_relay.Relay([(reader, target) for reader, _, target in pipes])
    teller = None
    try:
        place = host_rank.place(environment)
        teller = reporter.Teller(relay, place, _progress(folder) if folder else None, pid, began)
    except ValueError as error:
        sys.stderr.write(f"muster: can't tell which rank this is, so nothing is told of it: {error!r}\n")
    return _Watch(relay, teller)


def _pipes() -> List[Tuple[int, int, int]]:
    """(read end, write end, where it goes) of each output; one for both where both go to the same place, in order."""
    targets = [1] if os.path.sameopenfile(1, 2) else [1, 2]
    return [(*os.pipe(), target) for target in targets]


def _ends(pipes: Sequence[Tuple[int, int, int]]) -> Tuple[int, int]:
    return pipes[0][1], pipes[-1][1]


def _hooked(environment: Mapping[str, str], folder: Optional[str]) -> Mapping[str, str]:
    archive = os.path.abspath(sys.argv[0])
    value = _restored(environment, archive)
    if folder is None:
        return value
    hooked = hook_environment.with_hook(value, archive, hook_environment.SCOPE_RANK)
    hooked[hook_environment.PROGRESS] = _progress(folder)
    return hooked


def _restored(environment: Mapping[str, str], archive: str) -> Mapping[str, str]:
    """The environment with the user's program in it, whose name lies beside the archive."""
    entry = os.path.splitext(archive)[0]
    try:
        with open(f"{entry}.program", encoding="utf-8") as file:
            program = file.read().strip()
    except OSError:
        return environment
    suffix = ".py" if program.endswith(".py") else ".sh"
    return user_program.restored(environment, os.path.basename(entry) + suffix, program)


def _folder() -> Optional[str]:
    """A new folder for the rank's progress file; None when there is no place for one."""
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
    except OSError:  # a leftover of 4 KiB is no reason to say anything
        pass
