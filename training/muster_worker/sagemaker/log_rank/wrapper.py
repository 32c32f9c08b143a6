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

    from muster_worker.rank.trainer_socket import TrainerSocket
    from muster_worker.sagemaker.log_rank.output_relay import Relay
    from muster_worker.sagemaker.log_rank.reporter import LogReporter
    from muster_worker.sagemaker.log_rank.trainer_thread import TrainerThread

DRAIN_SECONDS = 0.2
"""Time limit for reading the last output after the rank's end. Its child processes may write for longer."""


_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
"""Variables with the rank of a process: of torchrun, Open MPI, MPICH and PRRTE."""


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the command after `--` in `arguments` and exit as it does."""
    command = list(arguments[arguments.index("--") + 1 :])
    child.open_standard_streams()
    signal_mask = child.block_signals()
    child.die_with_parent()
    environment = child.read_environment()
    started_at = time.time()
    folder = _create_folder()
    pipes = _open_pipes()
    trainer_socket = _open_trainer_socket(environment, folder)
    child_environment = _build_environment(environment, folder, trainer_socket)
    try:
        process = child.start(command, child_environment, _get_write_ends(pipes), signal_mask)
    except child.CommandRefused as error:
        sys.stderr.write(f"muster: {error}\n")
        sys.stderr.flush()
        _remove_folder(folder)
        os._exit(error.exit_code)
    for _, writer, _ in pipes:
        os.close(writer)
    # The command has started, so slow imports no longer delay it.
    trainer = None if trainer_socket is None else _start_trainer_thread(trainer_socket)
    relay_thread = _start_relay(environment, pipes, folder, process.pid, started_at, trainer=trainer)
    status = process.wait()
    if trainer is not None:
        trainer.end()
    relay_thread.end(status, process.peak_bytes)
    _remove_folder(folder)
    child.exit_with_status(status)


class _RelayThread:
    """The thread that relays output while the main thread waits for the command."""

    def __init__(self, relay: Relay, log_reporter: Optional[LogReporter]) -> None:
        from threading import Thread

        self._relay = relay
        self._log_reporter = log_reporter
        self._stop_reader, self._stop_writer = os.pipe()
        self._thread: Thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self, status: int, peak_bytes: int) -> None:
        """Print the rest of the output and how the command ended."""
        ended_at = time.time()
        os.write(self._stop_writer, b".")
        self._thread.join()
        self._relay.drain(DRAIN_SECONDS)
        if self._log_reporter is not None:
            self._log_reporter.end(status, ended_at, peak_bytes)
        # Child processes of the rank may still write: SIGPIPE would kill them without the relay.
        if self._relay.is_open and os.fork() == 0:
            self._relay.copy_rest()
            os._exit(0)

    def _run(self) -> None:
        log_reporter = self._log_reporter
        self._relay.run(self._stop_reader, lambda: 3600.0 if log_reporter is None else log_reporter.tick())


def _start_relay(
    environment: Mapping[str, str],
    pipes: Sequence[Tuple[int, int, int]],
    folder: Optional[str],
    pid: int,
    started_at: float,
    *,
    trainer: Optional[TrainerThread],
) -> _RelayThread:
    from muster_worker.sagemaker.log_rank import host_rank, output_relay, reporter

    relay = output_relay.Relay([(reader, target) for reader, _, target in pipes])
    log_reporter = None
    try:
        position = host_rank.find_position(environment)
        progress_path = _get_progress_path(folder) if folder else None
        log_reporter = reporter.LogReporter(relay, position, progress_path, pid, started_at, trainer=trainer)
    except ValueError as error:
        sys.stderr.write(f"muster: this process' rank is unknown, so the log has no reports of it: {error!r}\n")
    return _RelayThread(relay, log_reporter)


def _open_pipes() -> List[Tuple[int, int, int]]:
    """Open a pipe for each output. Returns (read end, write end, target) of each.

    Outputs with the same target share a pipe, so that their lines keep their order.
    """
    targets = [1] if os.path.sameopenfile(1, 2) else [1, 2]
    return [(*os.pipe(), target) for target in targets]


def _get_write_ends(pipes: Sequence[Tuple[int, int, int]]) -> Tuple[int, int]:
    return pipes[0][1], pipes[-1][1]


def _open_trainer_socket(environment: Mapping[str, str], folder: Optional[str]) -> Optional[TrainerSocket]:
    """Open the socket for the progress of rank 0; None for another rank, or if the user has named a server."""
    rank = next((environment[name] for name in _RANK_VARIABLES if name in environment), "0")
    if rank != "0" or folder is None or "KUBEFLOW_TRAINER_SERVER_URL" in environment:
        return None
    from muster_worker.rank.trainer_socket import TrainerSocket

    try:
        return TrainerSocket(folder)
    except OSError:  # the rank reports its steps only
        return None


def _start_trainer_thread(trainer_socket: TrainerSocket) -> TrainerThread:
    from muster_worker.sagemaker.log_rank.trainer_thread import TrainerThread

    return TrainerThread(trainer_socket)


def _build_environment(
    environment: Mapping[str, str], folder: Optional[str], trainer_socket: Optional[TrainerSocket]
) -> Mapping[str, str]:
    archive = os.path.abspath(sys.argv[0])
    restored = _restore_program(environment, archive)
    if trainer_socket is not None:
        from muster_worker.rank import trainer_variables

        restored = {**restored, **trainer_variables.build_variables(restored, trainer_socket.variables)}
    if folder is None:
        return restored
    hooked_environment = hook_environment.add_hook(restored, archive, hook_environment.SCOPE_RANK)
    hooked_environment[hook_environment.PROGRESS] = _get_progress_path(folder)
    return hooked_environment


def _restore_program(environment: Mapping[str, str], archive: str) -> Mapping[str, str]:
    """Return the environment with the user's program, whose name is in a file beside the archive."""
    entry = os.path.splitext(archive)[0]
    try:
        with open(f"{entry}.program", encoding="utf-8") as file:
            program = file.read().strip()
    except OSError:
        return environment
    suffix = ".py" if program.endswith(".py") else ".sh"
    return user_program.restore_program(environment, os.path.basename(entry) + suffix, program)


def _create_folder() -> Optional[str]:
    """Create a folder for the rank's progress file; None if that is impossible."""
    for base in (os.environ.get("TMPDIR"), "/tmp", "/dev/shm"):  # noqa: S108 - mkdir makes it private or fails
        folder = os.path.join(base or "/var/tmp", f"muster-rank-{os.getpid()}-{time.time_ns()}")  # noqa: S108
        try:
            os.mkdir(folder, 0o700)
            progress_file.create(_get_progress_path(folder))
        except OSError:
            continue
        return folder
    return None


def _get_progress_path(folder: str) -> str:
    return os.path.join(folder, "progress")


def _remove_folder(folder: Optional[str]) -> None:
    try:
        for name in os.listdir(folder) if folder else ():
            os.unlink(os.path.join(folder or "", name))
        if folder:
            os.rmdir(folder)
    except OSError:  # ignore a leftover of 4 KiB
        pass
