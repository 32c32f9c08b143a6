"""One host of a training job on this machine: SageMaker's own container toolkit, as it runs in the training image.

The user's Python runs it as a program, with the toolkit and whatever the training needs: nothing of muster but the
agent's archive is there. Two things of SageMaker's hosts are missing here, and are stood in for: names, by the host's
own /etc/hosts, and the ssh by which mpirun reaches other hosts, by a door on each host (a unix socket) and a program
called `ssh` that knocks there. What is replaced in the toolkit is sagemaker-training 5.1.4's, `mpi.py`.
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

KNOCK = "knock"  # DOORS: be the program called `ssh`

_DESCRIPTORS = 3
_MAX_COMMAND_BYTES = 1024 * 1024
_POLL_SECONDS = 0.2
"""The toolkit waits 30 s here and there for what takes no time on one machine."""


@dataclass(frozen=True)
class Host:
    """`tree` is the host's own /opt/ml, which all hosts see at `base`; `doors` is a folder that they share.

    `parent` is the process that starts it, and without which it ends.
    """

    name: str
    hosts_file: str
    tree: str
    base: str
    doors: str
    module: str
    archive: str
    parent: int


def main(arguments: list[str]) -> int:
    """Be the host that the file of the first argument describes; or, as `ssh`, knock at the door of another."""
    if arguments[0] == KNOCK:
        return knock(Path(arguments[1]), arguments[2:])
    host = Host(**json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    # the toolkit hands its own sys.path on to the ranks, which have nothing of muster's there on SageMaker either;
    # with PYTHONSAFEPATH this folder isn't the first of it, and the first is the user's
    users = [place for place in sys.path if place != str(Path(__file__).parent)]
    sys.path[:] = [host.archive, *users]
    from muster_worker.agent import guardian  # noqa: PLC0415 - from there
    from muster_worker.machine import processes  # noqa: PLC0415 - from there
    from muster_worker.network import hosts  # noqa: PLC0415 - from there

    sys.path[:] = users
    processes.end_with_parent(host.parent)
    why_not = hosts.mount_hosts(host.hosts_file, host.name)
    if why_not is not None:
        sys.stderr.write(f"muster: a training job's hosts need names of their own, and {why_not}\n")
        return 1
    hosts.mount_folder(host.tree, host.base)
    os.environ["SAGEMAKER_BASE_DIR"] = host.base
    if host.module:
        os.environ["SAGEMAKER_TRAINING_MODULE"] = host.module
    return guardian.guarded(lambda: train(host))


def train(host: Host) -> int:
    """What `train`, the command of SageMaker's images, does."""
    from sagemaker_training import mpi, trainer  # noqa: PLC0415 - of the user's Python

    for name, stand_in in stand_ins(Path(host.doors), host.name).items():
        setattr(mpi, name, stand_in)
    try:
        trainer.train()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def stand_ins(doors: Path, name: str) -> dict[str, object]:
    """What the toolkit's MPI has of SageMaker's hosts, by its names in `mpi.py`, as it is here."""
    return {
        "_start_sshd_daemon": lambda: open_door(doors, name),
        "_can_connect": lambda host: (doors / host).exists(),
        # what comes through the door has this process' environment
        "_write_env_vars_to_file": lambda: None,
        "_orted_process": wait_for_daemons,
        # of a library that tells ranks what their host is called, which they know here
        "getfile": lambda _: "",
        "MPI_FINISHED_STATUS_FILE": str(doors / "done"),
        "time": types.SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(min(seconds, _POLL_SECONDS))),
    }


def open_door(doors: Path, name: str) -> None:
    """From now on other hosts' commands are carried out, by a process of its own."""
    listener = socket.socket(socket.AF_UNIX)
    draft = doors / f"{name}.draft"
    listener.bind(str(draft))
    listener.listen(64)
    if os.fork() == 0:
        _admit_all(listener)
    listener.close()
    draft.rename(doors / name)  # who finds it can knock


def wait_for_daemons() -> list[object]:
    """The processes by which mpirun runs this host's ranks, once there are any."""
    import psutil  # noqa: PLC0415 - the toolkit's

    while True:
        # they leave who let them in, for the guardian
        below = psutil.Process(os.getppid()).children(recursive=True)
        result = [process for process in below if process.name() in {"orted", "prted"}]
        if result:
            return result
        time.sleep(_POLL_SECONDS)


def _admit_all(listener: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who carry a command out
    while True:
        visitor, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _carry_out(visitor)
        visitor.close()


def _carry_out(visitor: socket.socket) -> NoReturn:
    command, descriptors = _receive(visitor)
    pid = os.fork()
    if pid == 0:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.execv("/bin/sh", ["/bin/sh", "-c", command])
    for descriptor in descriptors:
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    visitor.sendall(bytes([os.waitstatus_to_exitcode(status) % 256]))
    os._exit(0)


def _receive(visitor: socket.socket) -> tuple[str, list[int]]:
    descriptors = array.array("i")
    room = socket.CMSG_SPACE(_DESCRIPTORS * descriptors.itemsize)
    data, ancillary, _, _ = visitor.recvmsg(_MAX_COMMAND_BYTES, room)
    for _, _, content in ancillary:
        descriptors.frombytes(content)
    while not data.endswith(b"\0"):
        more = visitor.recv(_MAX_COMMAND_BYTES)
        if not more:
            os._exit(1)
        data += more
    return os.fsdecode(data[:-1]), list(descriptors)


def knock(doors: Path, arguments: list[str]) -> int:
    """`ssh [-x] HOST COMMAND...` as mpirun and the toolkit call it; the command's exit code."""
    host, *command = [word for word in arguments if word != "-x"]
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(str(doors / host))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", range(_DESCRIPTORS)))]
        data = os.fsencode(" ".join(command)) + b"\0"
        door.sendall(data[door.sendmsg([data], rights) :])
        answer = door.recv(1)
    return answer[0] if answer else 255


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
