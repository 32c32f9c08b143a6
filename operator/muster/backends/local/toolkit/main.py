"""Run one host of a training job on this machine with SageMaker's own container toolkit, as in the training image.

This program runs in the user's Python, which has the toolkit and the packages of the training script, but not muster.
It uses only the agent's archive. Two features of SageMaker's hosts are missing here. Host names: each host mounts its
own /etc/hosts. ssh, with which mpirun reaches other hosts: each host has a Unix socket, to which a program called
`ssh` connects. The patched functions are in `mpi.py` of sagemaker-training 5.1.4.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import sys
import time
import types
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

SSH = "ssh"  # the first argument of the program called `ssh`

_DESCRIPTORS = 3
_MAX_COMMAND_BYTES = 1024 * 1024
_POLL_SECONDS = 0.2
"""Limit the toolkit's sleeps of up to 30 s: on one machine, the other hosts are ready at once."""


@dataclass(frozen=True)
class Host:
    """`tree` is the host's own /opt/ml, which it mounts at `base`; `sockets` is the shared folder of sockets.

    `parent` is the process that started the host; the host ends when `parent` ends.
    """

    name: str
    hosts_file: str
    tree: str
    base: str
    sockets: str
    module: str
    archive: str
    parent: int


def main(arguments: list[str]) -> int:
    """Run the host that the file in the first argument describes, or run a command on another host, like `ssh`."""
    if arguments[0] == SSH:
        return run_remotely(Path(arguments[1]), arguments[2:])
    host = Host(**json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    # the toolkit passes sys.path to the ranks, which must not find muster's modules; PYTHONSAFEPATH removes this folder
    user_paths = [path for path in sys.path if path != str(Path(__file__).parent)]
    sys.path[:] = [host.archive, *user_paths]
    from muster_worker.agent import guardian  # noqa: PLC0415 - from the archive
    from muster_worker.machine import processes  # noqa: PLC0415 - from the archive
    from muster_worker.network import hosts  # noqa: PLC0415 - from the archive

    sys.path[:] = user_paths
    processes.terminate_with_parent(host.parent)
    error = hosts.mount_hosts(host.hosts_file, host.name)
    if error is not None:
        sys.stderr.write(f"muster: a training job's hosts need their own /etc/hosts: {error}\n")
        return 1
    hosts.mount_folder(host.tree, host.base)
    os.environ["SAGEMAKER_BASE_DIR"] = host.base
    if host.module:
        os.environ["SAGEMAKER_TRAINING_MODULE"] = host.module
    return guardian.run_guarded(lambda: train(host))


def train(host: Host) -> int:
    """Train like the command `train` of SageMaker's images; return the exit code."""
    from sagemaker_training import mpi, trainer  # noqa: PLC0415 - in the user's Python

    for name, patch in make_patches(Path(host.sockets), host.name).items():
        setattr(mpi, name, patch)
    try:
        trainer.train()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def make_patches(sockets: Path, name: str) -> dict[str, object]:
    """Return the replacements for the toolkit's functions, by their names in `mpi.py`."""
    return {
        "_start_sshd_daemon": lambda: start_command_server(sockets, name),
        "_can_connect": lambda host: (sockets / host).exists(),
        # commands inherit this process' environment
        "_write_env_vars_to_file": lambda: None,
        "_orted_process": wait_for_daemons,
        # the toolkit would download a library that sets the host name, which is already set
        "getfile": lambda _: "",
        "MPI_FINISHED_STATUS_FILE": str(sockets / "done"),
        "time": types.SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(min(seconds, _POLL_SECONDS))),
    }


def start_command_server(sockets: Path, name: str) -> None:
    """Fork a process that executes other hosts' commands."""
    listener = socket.socket(socket.AF_UNIX)
    unnamed_socket = sockets / f"{name}.draft"
    listener.bind(str(unnamed_socket))
    listener.listen(64)
    if os.fork() == 0:
        _serve(listener)
    listener.close()
    unnamed_socket.rename(sockets / name)  # other hosts connect once the socket has this name


def wait_for_daemons() -> list[object]:
    """Wait for the processes with which mpirun starts this host's ranks."""
    import psutil  # noqa: PLC0415 - the toolkit depends on it

    while True:
        # these processes are re-parented to the guardian
        descendants = psutil.Process(os.getppid()).children(recursive=True)
        result = [process for process in descendants if process.name() in {"orted", "prted"}]
        if result:
            return result
        time.sleep(_POLL_SECONDS)


def _serve(listener: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the children
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _execute(connection)
        connection.close()


def _execute(connection: socket.socket) -> NoReturn:
    command, descriptors = _receive(connection)
    pid = os.fork()
    if pid == 0:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.execv("/bin/sh", ["/bin/sh", "-c", command])
    for descriptor in descriptors:
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    connection.sendall(bytes([os.waitstatus_to_exitcode(status) % 256]))
    os._exit(0)


def _receive(connection: socket.socket) -> tuple[str, list[int]]:
    descriptors = array.array("i")
    ancillary_bytes = socket.CMSG_SPACE(_DESCRIPTORS * descriptors.itemsize)
    data, ancillary, _, _ = connection.recvmsg(_MAX_COMMAND_BYTES, ancillary_bytes)
    for _, _, content in ancillary:
        descriptors.frombytes(content)
    while not data.endswith(b"\0"):
        chunk = connection.recv(_MAX_COMMAND_BYTES)
        if not chunk:
            os._exit(1)
        data += chunk
    return os.fsdecode(data[:-1]), list(descriptors)


def run_remotely(sockets: Path, arguments: list[str]) -> int:
    """Run `ssh [-x] HOST COMMAND...` for mpirun and the toolkit; return the command's exit code."""
    host, *command = [argument for argument in arguments if argument != "-x"]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(sockets / host))
        descriptors = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", range(_DESCRIPTORS)))]
        data = os.fsencode(" ".join(command)) + b"\0"
        connection.sendall(data[connection.sendmsg([data], descriptors) :])
        exit_code = connection.recv(1)
    return exit_code[0] if exit_code else 255


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
