"""A small agent for tests of the rank's side: a real socket and real pipes; it stores all messages in order."""

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from muster_dev.pythons import list_agent_pythons
from muster_worker.rank_group import link, progress
from support.agent_folder import share_agent_folder

ENOUGH_SECONDS = 60.0


# A rank may run any Python of its image, from 3.8 on.
_HERE = [python for _, python in list_agent_pythons()]
PYTHONS = [
    sys.executable,
    *(pytest.param(one, marks=pytest.mark.long) for one in (_HERE[0], _HERE[-1]) if one != sys.executable),
]
"""The tests' Python; in `make test-long` also the oldest and the newest on this machine."""


@dataclass
class Heard:
    """One connection: its messages, and the rank's output."""

    receiver: link.Receiver
    messages: list[link.Message] = field(default_factory=list)
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    open_pipes: int = 0

    @property
    def hello(self) -> link.HelloMessage:
        return next(message for message in self.messages if isinstance(message, link.HelloMessage))

    @property
    def started(self) -> link.StartedMessage:
        return next(message for message in self.messages if isinstance(message, link.StartedMessage))

    @property
    def last(self) -> link.Message:
        return self.messages[-1]

    @property
    def is_over(self) -> bool:
        return self.receiver.is_closed and self.open_pipes == 0

    @property
    def progress(self) -> progress.Progress:
        return progress.read(self.hello.progress)

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def errors(self) -> str:
        return self.err.decode()


class Agent:
    """Listens in `folder`. `heard` has a connection for every Hello, in the order of arrival."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = share_agent_folder()  # an agent unpacks its archive for its ranks
        self.heard: list[Heard] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "agent.sock"))
        self._listener.listen(16)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def make_environment(self, **more: str) -> dict[str, str]:
        """Return the environment that an agent gives a rank, without this test run's own variables."""
        base = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
        return {
            **base,
            "MUSTER_AGENT_SOCKET": str(self.folder / "agent.sock"),
            "MUSTER_ARCHIVE": str(self.archive),
            "MUSTER_PYTHON": sys.executable,
            "MUSTER_RUN_DIR": str(self.folder),
            **more,
        }

    def run_rank(self, *command: str, python: str = sys.executable, **more: str) -> Heard:
        """Run a wrapped command as rank 3, local rank 1, to its end."""
        before = len(self.heard)
        self.start(*command, python=python, leads_group=True, **more)
        return self.wait_until(lambda: len(self.heard) > before and self.heard[-1].is_over)

    def start(
        self,
        *command: str,
        python: str = sys.executable,
        leads_group: bool = True,
        **more: str,
    ) -> subprocess.Popen[bytes]:
        """Start the wrapper around a command as rank 3, local rank 1."""
        wrapped = [python, "-I", "-S", str(self.archive), "rank", "--", *command]
        return self.spawn(
            wrapped, self.make_environment(**{"RANK": "3", "LOCAL_RANK": "1", **more}), leads_group=leads_group
        )

    def spawn(
        self, command: Sequence[str], environment: dict[str, str], *, leads_group: bool = True
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=leads_group,
        )
        self.processes.append(process)
        return process

    def wait_until(self, condition: Callable[[], bool]) -> Heard:
        """Wait for `condition`; return the latest connection."""
        deadline = time.monotonic() + ENOUGH_SECONDS
        while not condition():
            left = deadline - time.monotonic()
            assert left > 0, f"nothing more came: {self.heard}"
            for key, _ in self._selector.select(min(left, 0.05)):
                key.data()
        return self.heard[-1]

    def wait_for_output(self, text: str) -> Heard:
        """Wait until the latest rank has started and printed `text` on standard output."""
        # a rank can write before its wrapper has reported the start
        return self.wait_until(
            lambda: len(self.heard) > 0 and text in self.heard[-1].text and len(self.heard[-1].messages) > 1
        )

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                # Kill its child processes, too: a data loader's workers notice its end only at their next check.
                with contextlib.suppress(ProcessLookupError):
                    leads = os.getpgid(process.pid) == process.pid
                    (os.killpg if leads else os.kill)(process.pid, 9)
            process.communicate()
        for key in list(self._selector.get_map().values()):
            os.close(key.fd) if isinstance(key.fileobj, int) else None
        for heard in self.heard:
            heard.receiver.close()
        self._listener.close()
        self._selector.close()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        heard = Heard(link.Receiver(connection))
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._receive(heard))

    def _receive(self, heard: Heard) -> None:
        for incoming in heard.receiver.receive():
            heard.messages.append(incoming.message)
            if isinstance(incoming.message, link.HelloMessage):
                self.heard.append(heard)
                for fd, kept in zip(incoming.fds, (heard.out, heard.err), strict=False):
                    heard.open_pipes += 1
                    self._selector.register(
                        fd, selectors.EVENT_READ, lambda fd=fd, kept=kept: self._drain(heard, fd, kept)
                    )
        if heard.receiver.is_closed:
            self._selector.unregister(heard.receiver.socket)

    def _drain(self, heard: Heard, fd: int, kept: bytearray) -> None:
        data = os.read(fd, 65536)
        kept.extend(data)
        if not data:
            self._selector.unregister(fd)
            os.close(fd)
            heard.open_pipes -= 1
