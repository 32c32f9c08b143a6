"""The operator as a process that starts at once: forked from a process with all imports, as `muster operator`."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from cluster import lan
from cluster.waiting import PAUSE_SECONDS
from support.free_port import free_port

END_SECONDS = 10.0
LEAD_SECONDS = 30.0
_IMPORTED = ["muster.cli.main", "muster.cli.commands", "muster.controller.serve", "muster.cli.operator.operator"]


@dataclass
class OperatorFork:
    """A replica of a namespace's operator that can be started again and again; all of them log to `log`."""

    kubeconfig: Path
    namespace: str
    log: Path
    collector_port: int = field(default_factory=free_port)
    health_port: int = field(default_factory=free_port)
    starts: int = 0
    _said_before: int = 0
    _process: ForkServerProcess | None = None

    def start(self) -> None:
        """Start the operator, without waiting until it is ready."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_IMPORTED)
        self._said_before = len(self.said)
        self._process = context.Process(target=_operate, args=(str(self.kubeconfig), str(self.log), self._options()))
        self._process.start()
        self.starts += 1

    def ensure(self) -> None:
        """Start the operator if it doesn't run."""
        if not self.runs:
            self.end()
            self.start()

    @property
    def runs(self) -> bool:
        """Whether the operator's process exists."""
        return self._process is not None and self._process.is_alive()

    def until_leads(self) -> None:
        """Wait until the operator is the leader, up to a time limit."""
        deadline = time.monotonic() + LEAD_SECONDS
        while " is the leader, leader term" not in self.said[self._said_before :] and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)

    def kill(self) -> None:
        """Kill the operator with SIGKILL and wait for its end."""
        self._send(signal.SIGKILL)

    def stop(self) -> None:
        """Send SIGTERM, without waiting."""
        self._send(signal.SIGTERM)

    def join(self) -> None:
        """Wait until the operator has ended after SIGTERM."""
        process = self._process
        if process is not None:
            process.join(END_SECONDS)
        self.end()

    def end(self) -> None:
        """Kill the operator if it runs, and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.join(END_SECONDS)
        process.close()

    @property
    def said(self) -> str:
        """Return the log of all replicas."""
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def _send(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    def _options(self) -> tuple[str, ...]:
        return (
            f"--namespace={self.namespace}",
            f"--lease-namespace={self.namespace}",
            "--lease-name=lead",
            f"--collector-port={self.collector_port}",
            f"--collector-url=https://{lan.HOST}:{self.collector_port}",
            f"--health-port={self.health_port}",
        )


def _operate(kubeconfig: str, log: str, options: tuple[str, ...]) -> None:
    """Run the command line in the child process."""
    from muster.cli.main import main  # noqa: PLC0415 - already imported by the parent process

    os.environ["KUBECONFIG"] = kubeconfig
    # A killed process leaves the files that the Kubernetes client makes of a kubeconfig's certificates.
    folder = Path(log).with_suffix(".tmp")
    folder.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    # Ctrl-C is for the tests.
    os.setsid()
    sys.argv = ["muster", "operator", *options]
    main()
