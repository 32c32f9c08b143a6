"""The fork server: imports what ranks import, then forks a process for each request.

It runs in the Python of the ranks, with the options that the command has for Python, as `python OPTIONS -c BOOTSTRAP
ARGUMENTS`. These are its arguments:

1. the file descriptor of the inherited socket on which it listens;
2. the number of spares: pairs of processes to fork before a request arrives (`spares.py`);
3. the path of Python, as the command has it;
4. the options, as one argument;
5. the modules to import, each as one argument;
6. padding (`COMMAND_LINE_PADDING`).

For each request there is a parent process (`rank_parent.py`), which forks the rank in a new session and waits for it.
The fork server has only one thread, because a forked process has only the thread that called fork.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
import tempfile
import warnings

from muster_worker.fork_server import rank_parent
from muster_worker.fork_server.rank_parent import RequestSource
from muster_worker.fork_server.refusals import ServerState
from muster_worker.fork_server.spares import SparePool
from muster_worker.rank import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional, Sequence

BOOTSTRAP = "__import__('muster_worker.fork_server.server', fromlist=['serve']).serve()()"
"""A single expression: before `serve()` returns in a rank, the rank replaces the global names of `__main__`, so another
statement could not use the result.
"""

COMMAND_LINE_PADDING = "-" * 4096
"""The last argument reserves memory in which a rank writes its own command line, for ps and pkill."""

ACCELERATOR_DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/neuron")
"""The beginnings of the paths of NVIDIA's, AMD's and AWS' accelerators."""


def serve() -> Callable[[], None]:
    """Serve requests forever. The call returns only in a forked rank, with a function that runs the rank's program."""
    listener, spare_count = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    python, options, modules = sys.argv[3], sys.argv[4].split(), sys.argv[5:-1]
    child.die_with_parent()
    environment = child.read_environment()
    with tempfile.TemporaryFile() as output:
        refusal = _find_other_python(python) or _import(modules, output.fileno())
        output.seek(0)
        import_output = output.read()
    refusal = refusal or _find_unsafe_import()
    python_set_lc_ctype = "LC_CTYPE" in os.environ and "LC_CTYPE" not in environment
    state = ServerState(environment, options, import_output, refusal, python_set_lc_ctype=python_set_lc_ctype)
    # A full collection in a rank would touch, and so copy, every page that it shares with the fork server.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the parents of ranks
    pool = SparePool(0 if refusal else spare_count)
    while True:
        connection = listener.accept()[0] if pool.wait(listener) else None
        spare, pipe = pool.add() if connection is None else (None, None)
        if os.fork() == 0:
            pool.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return rank_parent.serve_request(RequestSource(listener, connection, spare), state)
        if connection is not None:
            connection.close()
        if pipe is not None:
            os.close(pipe)


def _find_other_python(python: str) -> Optional[str]:
    """Return why `refusals.find_refusal` would refuse each rank, because this Python isn't the rank's.

    Check this before the imports, so that ranks don't wait for useless imports.
    """
    if os.path.abspath(python) == os.path.abspath(sys.executable):
        return None
    return f"{python} is a program that starts {sys.executable}"


def _import(modules: Sequence[str], output: int) -> Optional[str]:
    """Import modules, with standard output and error redirected to `output`. Returns the reason not to fork, if any."""
    # Don't import from the working directory: the rank's module path begins with the folder of its script instead.
    first_path = None if getattr(sys.flags, "safe_path", False) else sys.path.pop(0)
    saved_streams = os.dup(1), os.dup(2)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        for name in modules:
            importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - the rank itself reports any error
        return f"{name} could not be imported: {type(error).__name__}: {error}"
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, stream in enumerate(saved_streams, 1):
            os.dup2(stream, number)
            os.close(stream)
        if first_path is not None:
            sys.path.insert(0, first_path)
    return None


def _find_unsafe_import() -> Optional[str]:
    """Return what the imports have done that a forked rank can't use."""
    _end_threads_of_libraries()
    if len(os.listdir("/proc/self/task")) > 1:
        return "an import started threads, which a forked process does not have"
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith(ACCELERATOR_DEVICES):
            return f"an import opened {target}, which a forked process can't use"
    for name in ("sitecustomize", "usercustomize"):
        user_file = getattr(sys.modules.get(name), "__file__", None)
        if user_file is not None and not _belongs_to_python(os.path.realpath(user_file)):
            return f"{user_file} runs at the start of each Python"
    return None


def _belongs_to_python(path: str) -> bool:
    """Whether the module belongs to Python: it is in the standard library, or Debian's in /etc/python3.11."""
    return os.path.dirname(path) == os.path.dirname(os.path.realpath(os.__file__)) or path.startswith("/etc/python")


def _end_threads_of_libraries() -> None:
    """Fork a process, because some libraries end their threads before a fork, and start them again when needed.

    OpenBLAS, which numpy loads, does so (`pthread_atfork`). It has OMP_NUM_THREADS threads.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns about a fork with threads
        pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
