"""Two nodes' ends of the calls between agents, in one process and one loop, for tests."""

import os
import secrets
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from muster.ranks.gang_credentials import SEED_BYTES, derive
from muster_worker import processes
from muster_worker.calls import Calls
from muster_worker.contract import VERSION, Credentials, Launcher, Peer, Plan
from muster_worker.environment import Place
from muster_worker.library_interfaces import Network
from muster_worker.log import Log
from muster_worker.port import hold_port
from muster_worker.remote_program import program
from muster_worker.sagemaker import Host

JOB = "7a1f0000-0000-4000-8000-000000000001"
PATIENCE = 30.0


class RemoteGang:
    """Node 0 and node 1 of a job, both here; what is wanted of either runs in this process' loop."""

    def __init__(self, archive: Path) -> None:
        self.selector = selectors.DefaultSelector()
        self.folder = Path(tempfile.mkdtemp(prefix="muster-test-"))
        self.seed = secrets.token_bytes(SEED_BYTES)
        self.ports = [hold_port(), hold_port()]
        self.peers = tuple(Peer(node, "127.0.0.1", port.getsockname()[1]) for node, port in enumerate(self.ports))
        self._log_reader, writer = os.pipe()
        self._log = Log(writer)
        processes.adopt_orphans()
        self.calls = [self._join(node, archive) for node in range(2)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while processes.signal_all(processes.descendants(), 9):
            processes.reap()
        for calls in self.calls:
            calls.close()
        for port in self.ports:
            port.close()
        self.selector.close()

    def credentials(self, job: str = JOB, incarnation: int = 1) -> Credentials:
        return derive(self.seed, job, incarnation)

    def call(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start node 0's program, as its mpirun would."""
        return subprocess.Popen(
            [program(str(self.folder / "0")), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def turn(self, seconds: float = 0.05) -> None:
        """One turn of the loop."""
        for key, _ in self.selector.select(seconds):
            key.data()
        for calls in self.calls:
            calls.step()

    def turn_until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Turns until `condition` holds."""
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, f"waited in vain; the log says: {self.log()}"
            self.turn()

    def log(self) -> str:
        """What the agents have said so far."""
        self._log.flush(1.0)
        os.set_blocking(self._log_reader, False)
        try:
            return os.read(self._log_reader, 1 << 16).decode()
        except BlockingIOError:
            return ""

    def stranger(self) -> socket.socket:
        """A connection to node 1's port by who knows nothing else."""
        return socket.create_connection(("127.0.0.1", self.peers[1].port))

    def _join(self, node: int, archive: Path) -> Calls:
        run = self.folder / str(node)
        run.mkdir(mode=0o700)
        environment = {"PATH": os.environ["PATH"], "NODE": str(node)}
        place = self.place(node, run, archive)
        return Calls(place, self.credentials(), self.ports[node], environment, selector=self.selector, log=self._log)

    def place(self, node: int, run: Path, archive: Path) -> Place:
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
        )
        return Place(
            plan=plan,
            node=node,
            peers=self.peers,
            network=Network("lo", "127.0.0.1"),
            host=Host(2, 0, "local", "lo", "/"),
            root="/opt/ml",
            run=str(run),
            socket=str(run / "1.sock"),
            archive=str(archive),
            python=sys.executable,
        )


def environment_of(text: str) -> Mapping[str, str]:
    """What `env` printed."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
