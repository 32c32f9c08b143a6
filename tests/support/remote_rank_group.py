"""Runs the remote commands between the agents of two nodes in one process and one event loop, for tests."""

import os
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from muster.collector.trust.attempt_credentials import SEED_BYTES, derive_credentials
from muster_worker.agent.log import Log
from muster_worker.contract.schema import VERSION, Credentials, Launcher, Peer, Plan
from muster_worker.launchers.environment import NodeContext
from muster_worker.machine import processes
from muster_worker.network.library_interfaces import Network
from muster_worker.network.port import hold_port
from muster_worker.remote.program import get_program_path
from muster_worker.remote.remote_commands import RemoteCommands
from muster_worker.sagemaker.container import Host

JOB = "7a1f0000-0000-4000-8000-000000000001"
PATIENCE = 30.0


@dataclass(frozen=True)
class RunningClient:
    """A running program that replaces ssh, and the files with its output."""

    pid: int
    out: Path
    err: Path


class RemoteRankGroup:
    """Node 0 and node 1 of a job in this process; both run in its event loop."""

    def __init__(self, archive: Path, *, fence_seconds: float = 0.0) -> None:
        self.selector = selectors.DefaultSelector()
        self.folder = Path(tempfile.mkdtemp(prefix="muster-test-"))
        self.seed = secrets.token_bytes(SEED_BYTES)
        self.ports = [hold_port(), hold_port()]
        self.peers = tuple(Peer(node, "127.0.0.1", port.getsockname()[1]) for node, port in enumerate(self.ports))
        self._log_reader, self._log_writer = os.pipe()
        self._log = Log(self._log_writer)
        self._called = 0
        self.connections: list[socket.socket] = []  # closed at the end
        self.ends: dict[int, processes.ProcessExit] = {}
        self._others = frozenset(processes.list_descendants())
        processes.adopt_orphans()
        self._archive = archive
        self._fence_seconds = fence_seconds
        self.remote_commands = [self._join(node) for node in range(2)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while processes.signal_processes(self._list_own_processes(), signal.SIGKILL):
            processes.reap()
        for remote_commands in self.remote_commands:
            remote_commands.close()
        for connection in self.connections:
            connection.close()
        for port in self.ports:
            port.close()
        self.selector.close()
        self._log.flush(1.0)
        for descriptor in (self._log_reader, self._log_writer):
            os.close(descriptor)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _list_own_processes(self) -> list[int]:
        """Return the processes of the commands. The process of the tests has others, such as its fork servers."""
        return [pid for pid in processes.list_descendants() if pid not in self._others]

    def make_credentials(self, job: str = JOB, attempt: int = 1) -> Credentials:
        return derive_credentials(self.seed, job, attempt)

    def call(self, *arguments: str) -> RunningClient:
        """Start node 0's program, as its mpirun would."""
        self._called += 1
        outputs = [self.folder / f"{self._called}.{name}" for name in ("out", "err")]
        with outputs[0].open("wb") as out, outputs[1].open("wb") as err:
            process = subprocess.Popen(
                [get_program_path(str(self.folder / "0")), *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        process.returncode = 0  # the event loop of this process reaps the program
        return RunningClient(process.pid, *outputs)

    def wait_for_exit(self, called: RunningClient) -> int:
        """Run the call to its end; return its exit code."""
        self.turn_until(lambda: called.pid in self.ends)
        return self.ends[called.pid].exit_code

    def turn(self, seconds: float = 0.02) -> None:
        """Run one iteration of the loop."""
        for key, _ in self.selector.select(seconds):
            key.data()
        for end in processes.reap():
            if not any(remote_commands.on_reaped(end) for remote_commands in self.remote_commands):
                self.ends[end.pid] = end
        for remote_commands in self.remote_commands:
            remote_commands.poll()

    def turn_until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Run iterations until `condition` holds."""
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, f"waited in vain; the log says: {self.log()}"
            self.turn()

    def log(self) -> str:
        """Return the agents' log messages so far."""
        self._log.flush(1.0)
        os.set_blocking(self._log_reader, False)
        try:
            return os.read(self._log_reader, 1 << 16).decode()
        except BlockingIOError:
            return ""

    def connect_stranger(self, address: str = "127.0.0.1") -> socket.socket:
        """Connect to node 1's port from this address, without credentials."""
        connection = socket.create_connection(("127.0.0.1", self.peers[1].port), source_address=(address, 0))
        self.connections.append(connection)
        return connection

    def listen_again(self) -> None:
        """Listen on node 1's announced port again."""
        port = socket.socket()
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port.bind(("127.0.0.1", self.peers[1].port))
        self.ports[1] = port
        self.remote_commands.append(self._join(1))

    def _join(self, node: int) -> RemoteCommands:
        run = self.folder / str(node)
        run.mkdir(mode=0o700, exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "NODE": str(node)}
        context = self._make_context(node, run)
        return RemoteCommands(
            context, self.make_credentials(), self.ports[node], environment, selector=self.selector, log=self._log
        )

    def _make_context(self, node: int, run: Path) -> NodeContext:
        plan = Plan(
            version=VERSION,
            namespace="default",
            job="digits",
            job_uid=JOB,
            nodes=2,
            procs_per_node=2,
            launcher=Launcher.MPI,
            launcher_args=(),
            command=("true",),
            hyperparameters={},
            channels=(),
            metrics=(),
            interface="Auto",
            collector_url="https://127.0.0.1:1",
            collector_ca="",
            fence_seconds=self._fence_seconds,
        )
        return NodeContext(
            plan=plan,
            node=node,
            peers=self.peers,
            network=Network("lo", "127.0.0.1"),
            host=Host(2, 0, "local", "lo", "/"),
            root="/opt/ml",
            run_dir=str(run),
            socket_path=str(run / "1.sock"),
            archive=str(self._archive),
            python=sys.executable,
        )
