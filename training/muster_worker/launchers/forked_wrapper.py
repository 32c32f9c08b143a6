"""Forks the wrapper of a rank or of a launcher from the agent, instead of starting a Python for it.

The forked process keeps no state of the agent: it gets the wrapper's environment as an argument, and replaces signal
handlers, descriptors and session before the wrapper runs. A forked process has only one thread. So it must not use a
module whose lock another thread of the agent may have held. The rank itself is started with exec, as always.
"""

from __future__ import annotations

import gc
import os
import signal
import traceback
from typing import AbstractSet, Callable, Mapping, NamedTuple, NoReturn, Sequence, Tuple

from muster_worker.fork_server import client
from muster_worker.machine import processes
from muster_worker.rank import wrapper
from muster_worker.rank.child import STANDARD_ERROR
from muster_worker.rank.command_line import write_command_line

PRELOADED_MODULES = (client, wrapper)
"""The wrapper's modules. An upgraded operator may replace the archive, so they are imported before the first fork."""


WRAPPERS: Mapping[str, Callable[[Sequence[str], Mapping[str, str]], NoReturn]] = {
    "rank": wrapper.main,
    "launcher": wrapper.run_launcher,
}
"""The functions of the wrappers, by their sub-commands of the archive."""


class WrapperCommand(NamedTuple):
    """A wrapper's command line and environment. `arguments` is the part of the command line that the wrapper parses."""

    line: Sequence[str]
    arguments: Sequence[str]
    environment: Mapping[str, str]
    name: str = "rank"  # of `WRAPPERS`


def fork_wrapper(command: WrapperCommand) -> Tuple[int, Tuple[int, int]]:
    """Fork a wrapper from the main thread, as `processes.start` would start its command line.

    Returns its pid, and the read ends of its standard output and standard error. Raises `OSError`.
    """
    (output_reader, output_writer), (error_reader, error_writer) = _open_pipes()
    agent = os.getpid()
    # A signal that the new process gets before it has handlers of its own would wake up the agent.
    signal_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _run(command, agent, (output_writer, error_writer), signal_mask)
    except OSError:
        os.close(output_reader)
        os.close(error_reader)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask)
        os.close(output_writer)
        os.close(error_writer)
    return pid, (output_reader, error_reader)


def _open_pipes() -> Tuple[Tuple[int, int], Tuple[int, int]]:
    first = os.pipe()
    try:
        return first, os.pipe()
    except OSError:
        os.close(first[0])
        os.close(first[1])
        raise


def _run(command: WrapperCommand, agent: int, outputs: Tuple[int, int], signal_mask: AbstractSet[int]) -> NoReturn:
    """Run the wrapper in the forked process, which has all signals blocked."""
    try:
        gc.disable()  # the agent's objects must not be finalized in this process
        processes.die_with_parent(agent)
        os.setsid()
        _set_standard_streams(outputs)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask)
        write_command_line(command.line)
        WRAPPERS[command.name](command.arguments, command.environment)
    except BaseException:  # noqa: BLE001 - the agent reports the exit code
        os.write(STANDARD_ERROR, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(1)


def _set_standard_streams(outputs: Tuple[int, int]) -> None:
    """Keep the standard streams only: an empty input and `outputs`."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, descriptor in enumerate(outputs, 1):
        os.dup2(descriptor, number)
    os.closerange(STANDARD_ERROR + 1, max(int(name) for name in os.listdir("/proc/self/fd")) + 1)
