"""A program that has imported the whole `muster` command, or the agent, and forks each process that a test starts.

Importing takes up to half a second of processor time, which is more than most commands need for their work.
support/forked_process.py starts one server of each kind for each process of the tests.
"""

import array
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

REQUEST_BYTES = 1 << 17
"""More than the command line and the environment of any test."""

STREAMS = 3
"""Standard input, output and error, which come with each request."""


class Request(TypedDict):
    """A command to run, as JSON."""

    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    new_session: bool


def import_commands() -> Callable[[], object]:
    """Import every module of the command line, and so what these import. Return its main function."""
    import_package("muster.cli")
    main: Callable[[], object] = importlib.import_module("muster.cli.main").main
    return main


def import_agent(folder: str) -> Callable[[], object]:
    """Import the agent from its folder; return its main function."""
    sys.path.insert(0, folder)
    for package in ("agent", "launchers", "rank_group"):
        import_package(f"muster_worker.{package}")
    main: Callable[[Sequence[str]], int] = importlib.import_module("muster_worker.entry").main
    return lambda: sys.exit(main(sys.argv[1:]))


def import_package(name: str) -> None:
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        importlib.import_module(module.name)


def serve(requests: socket.socket) -> Request:
    """Fork a process for each request; return the request in that process. Exits once the test process has ended."""
    size = array.array("i").itemsize
    while True:
        content, ancillary, *_ = requests.recvmsg(REQUEST_BYTES, socket.CMSG_SPACE(STREAMS * size))
        if not content:
            sys.exit()
        streams = array.array("i", ancillary[0][2])
        child = os.fork()
        if child == 0:
            between = os.getpid()
            if os.fork() == 0:
                answer(requests, between)
                take_streams(requests, streams)
                request: Request = json.loads(content)
                return request
            os._exit(0)
        os.waitpid(child, 0)
        for stream in streams:
            os.close(stream)


def answer(requests: socket.socket, parent: int) -> None:
    """Send the number of this process, once `parent` has ended and the kernel has made the test process its parent.

    The test process is a subreaper meanwhile, so it inherits the child of a process that ends. Then it waits for the
    command as for any process that it has started itself.
    """
    # No event tells the new parent. It takes microseconds.
    while os.getppid() == parent:
        time.sleep(0.0001)
    requests.send(str(os.getpid()).encode())


def take_streams(requests: socket.socket, streams: Sequence[int]) -> None:
    """Make these the standard streams, and close all other files."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    requests.close()
    os.closerange(STREAMS, max(streams) + 1)


def become(request: Request) -> None:
    """Set what a new Python process gets from its parent."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["new_session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = list(request["arguments"])
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - as Python opens them
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stdout.reconfigure(write_through=unbuffered)
    sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr.reconfigure(line_buffering=True)


if __name__ == "__main__":
    # Ctrl-C is for the tests, which end this process by closing its socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run = import_agent(sys.argv[2]) if sys.argv[2:] else import_commands()
    gc.freeze()
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
    run()
