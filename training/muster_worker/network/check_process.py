"""The network check's process, in the agent's event loop."""

from __future__ import annotations

import os
import selectors
import signal
import time
from typing import List, Mapping, Optional, Tuple

from muster_worker.agent.state import Event
from muster_worker.contract import wire
from muster_worker.contract.network import NetworkFigures
from muster_worker.launchers.environment import NodeContext
from muster_worker.machine import processes
from muster_worker.network.check_results import CHECK_SECONDS, MAX_PROBLEM_CHARS, assign

SPARE_SECONDS = 5.0
"""Additional time for a slow start of Python. Then the agent kills the process."""

_MAX_BYTES = 64 * 1024


class CheckProcess:
    """A running check. At its end it sets `figures`, even if it fails. Times are on the node's monotonic clock."""

    def __init__(self, pid: int, outputs: Tuple[int, int], selector: selectors.BaseSelector, now: float) -> None:
        self._pid = pid
        self._outputs = outputs
        self._selector = selector
        self._deadline = now + CHECK_SECONDS + SPARE_SECONDS
        self._output = b""
        self._has_ended = False
        self.figures: Optional[NetworkFigures] = None
        for descriptor in outputs:
            os.set_blocking(descriptor, False)
        selector.register(outputs[0], selectors.EVENT_READ, self._read)

    @property
    def next_poll_at(self) -> float:
        """When to call `poll` next, on the node's clock."""
        return 0.0 if self._has_ended else self._deadline

    def poll(self, now: float) -> None:
        """Finish the check if it has ended or the time is over."""
        if self.figures is None and (self._has_ended or now >= self._deadline):
            self.figures = self._read_result()
            self.close()

    def close(self) -> None:
        """Kill the process if it still runs, and close its outputs."""
        if not self._has_ended:  # the pid may already belong to another process
            processes.signal_process_group(self._pid, signal.SIGKILL)
        self._selector.unregister(self._outputs[0])
        for descriptor in self._outputs:
            os.close(descriptor)

    def _read(self) -> List[Event]:
        data = _read_available(self._outputs[0])
        self._output += data
        self._has_ended = not data or len(self._output) > _MAX_BYTES
        return []

    def _read_result(self) -> NetworkFigures:
        if not self._has_ended:
            return NetworkFigures(problem=f"not finished within {CHECK_SECONDS + SPARE_SECONDS:.0f} s")
        try:
            return wire.decode(NetworkFigures, self._output)
        except wire.MalformedDocument:
            lines = _read_available(self._outputs[1]).decode("utf-8", "replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), "it ended without output")
            return NetworkFigures(problem=last[:MAX_PROBLEM_CHARS])


def start_check(
    context: NodeContext, base_environment: Mapping[str, str], selector: selectors.BaseSelector
) -> Optional[CheckProcess]:
    """Start the check from the main thread; None without partners. Raises `OSError`."""
    assignment = assign(context.node, context.peers, context.plan.job_uid, context.attempt)
    if assignment is None:
        return None
    document = wire.encode(assignment).decode()
    command = (context.python, "-I", "-S", context.program, "network-check", document)
    process = processes.start(command, base_environment)
    return CheckProcess(process.pid, processes.take_outputs(process), selector, time.monotonic())


def _read_available(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _MAX_BYTES)
    except BlockingIOError:
        return b""
