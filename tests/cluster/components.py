"""The cluster's processes, started with a mark in their environment, by which any later command finds them."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.places import State
from cluster.say import CannotGoOn

MARK = "MUSTER_CLUSTER_COMPONENT"
LAST_LINES = 25

MEMORY = {"GOGC": "400"}
"""The components collect garbage at five times the memory that they use, not at twice: the machine has more memory
than processors."""


@dataclass(frozen=True)
class Component:
    """A process that this invocation has started."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise CannotGoOn, with the last lines of the component's log, if it has ended."""
        code = self.process.poll()
        if code is not None:
            raise CannotGoOn(f"{self.name} ended with exit code {code}. {self.termination_messages()}")

    def termination_messages(self) -> str:
        """Return the last lines of the log, and the path of the whole log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join([f"The last lines of {self.log}:", *lines])


@dataclass(frozen=True)
class FoundComponent:
    """A running process with the mark."""

    name: str
    pid: int


def start(
    name: str, command: Sequence[str], state: State, environment: Mapping[str, str], stdout: int | None = None
) -> Component:
    """Start a component that outlives this process and doesn't get its Ctrl-C. Its output is appended to its log."""
    state.logs.mkdir(parents=True, exist_ok=True)
    log = state.logs / f"{name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output if stdout is None else stdout,
            stderr=output,
            env=dict(os.environ) | MEMORY | dict(environment) | {MARK: name},
            start_new_session=True,
        )
    return Component(name, process, log)


def marked() -> list[FoundComponent]:
    """Return all processes of any cluster on this machine."""
    result = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            # It has exited in the meantime, or belongs to another user.
            continue
        for variable in variables:
            key, _, value = os.fsdecode(variable).partition("=")
            if key == MARK:
                result.append(FoundComponent(value, int(process.name)))
    return result


def kill(processes: Sequence[FoundComponent], seconds: float) -> list[FoundComponent]:
    """Kill processes with SIGKILL: none of their data is needed. Return those that still run after `seconds`."""
    waiting: dict[int, FoundComponent] = {}
    for found in processes:
        try:
            descriptor = os.pidfd_open(found.pid)
        except ProcessLookupError:
            continue
        waiting[descriptor] = found
        # Use the pidfd, because the pid may already belong to another process.
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except ProcessLookupError:
            continue
    poll = select.poll()
    for descriptor in waiting:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + seconds
    while waiting and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            poll.unregister(descriptor)
            del waiting[descriptor]
            os.close(descriptor)
    for descriptor in waiting:
        os.close(descriptor)
    return list(waiting.values())
