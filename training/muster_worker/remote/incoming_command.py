"""A command that mpirun on another node runs here, and its connection."""

from __future__ import annotations

import os
import selectors
import signal
import time
from functools import partial
from typing import Callable, Dict, List, Optional, Tuple

from muster_worker.agent.state import Event
from muster_worker.machine import processes
from muster_worker.remote import frames
from muster_worker.remote.event_registration import EventRegistration
from muster_worker.remote.frames import BadFrame
from muster_worker.remote.tls_channel import Channel, ChannelLost

FIRST_FRAME_SECONDS = 10.0
"""Time limit for the command to arrive on a new connection, as protection against idle connections."""

LOST_GRACE_SECONDS = 2.0
"""Grace period between SIGTERM and SIGKILL for the command of a lost connection."""

SCAN_SECONDS = 0.05
"""Interval between two scans for remaining processes, so that a process that forks repeatedly is killed in the end."""

ID_VARIABLE = "MUSTER_CALL"
"""Environment variable that marks all processes of a command, so that the agent finds them."""

StartCommand = Callable[[str, str], Tuple[int, Tuple[int, int]]]
"""Starts a command. Returns its pid and the read ends of its outputs. Raises `OSError`."""


class IncomingCommand:
    """A connection from another node, and its command once that has arrived."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        selector: selectors.BaseSelector,
        start_command: StartCommand,
        now: float,
        *,
        is_from_peer: bool,
    ) -> None:
        self.name = name
        self.is_from_peer = is_from_peer  # the address is a peer's, which does not prove the identity
        self.pid: Optional[int] = None  # of the running command
        self.is_finished = False
        self.problem: Optional[str] = None  # why it failed, for the log
        self._channel = channel
        self._selector = selector
        self._start_command = start_command
        self._deadline: Optional[float] = now + FIRST_FRAME_SECONDS
        self._kill_at: Optional[float] = None  # when to send SIGKILL, after the connection was lost
        self._was_started = False  # the command was started
        self._is_end_sent = False  # the END frame is sent or queued
        self._reader = frames.Reader(frames.RUN)
        self._outputs: Dict[int, Tuple[bytes, EventRegistration]] = {}
        self._registration = EventRegistration(selector, channel.socket.fileno(), self._on_channel)
        self._registration.set_events(channel.events)

    @property
    def is_pending(self) -> bool:
        """Whether it has not sent a command yet."""
        return self._deadline is not None and not self.is_finished

    @property
    def next_poll_at(self) -> Optional[float]:
        """When to call `poll` next; None while waiting for events."""
        if self.is_finished:
            return None
        return self._kill_at if self._kill_at is not None else self._deadline

    def poll(self, now: float) -> None:
        """After a time limit, close a connection without a command, or kill a lost connection's processes."""
        if self._deadline is not None and now >= self._deadline:
            self.problem = f"no command within {FIRST_FRAME_SECONDS:.0f} s"
            self._disconnect(now)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = now + SCAN_SECONDS
            if (
                not processes.signal_processes(processes.find_by_environment(self._id_variable), signal.SIGKILL)
                and self.pid is None
            ):
                self.is_finished = True

    def on_reaped(self, end: processes.ProcessExit, now: float) -> None:
        """Send the rest of the command's output and its exit status."""
        self.pid = None
        for descriptor in list(self._outputs):
            self._drain(descriptor)
        if self.is_finished or self._kill_at is not None:
            return
        kind, value = (frames.SIGNALLED, end.signal) if end.signal else (frames.EXITED, end.exit_code)
        self._send(kind, str(value).encode("ascii"), now)
        self._is_end_sent = True
        self._update_events()

    def drop(self, now: float) -> None:
        """Close the connection and stop its command."""
        self._disconnect(now)

    def close(self) -> None:
        """Close everything when no process of the rank group runs."""
        self._release()
        self.is_finished = True

    @property
    def _id_variable(self) -> bytes:
        return f"{ID_VARIABLE}={self.name}".encode("ascii")

    def _on_channel(self) -> List[Event]:
        now = time.monotonic()
        try:
            for _, payload in self._reader.feed(self._channel.advance()):
                self._run(payload, now)
        except ChannelLost as error:
            # Don't log port scans, nor agents that only check that this node is reachable.
            self.problem = str(error) if self.is_pending and not self._reader.is_empty else None
            self.problem = str(error) if "certificate" in str(error) else self.problem
            self._disconnect(now)
        except BadFrame as error:
            self.problem = str(error)
            self._disconnect(now)
        else:
            self._update_events()
        return []

    def _run(self, payload: bytes, now: float) -> None:
        if self._deadline is None:
            raise BadFrame("a second command on one connection")
        self._deadline = None
        try:
            self.pid, outputs = self._start_command(os.fsdecode(payload), self.name)
        except (OSError, ValueError) as error:
            self._send(frames.REFUSED, f"the command can't be started: {error}".encode("utf-8", "replace")[:1000], now)
            self._is_end_sent = True
            return
        self._was_started = True
        for kind, descriptor in zip((frames.OUT, frames.ERR), outputs):
            os.set_blocking(descriptor, False)
            registration = EventRegistration(self._selector, descriptor, partial(self._on_output, descriptor))
            self._outputs[descriptor] = (kind, registration)

    def _on_output(self, descriptor: int) -> List[Event]:
        if descriptor in self._outputs:
            self._forward(descriptor)
            self._update_events()
        return []

    def _forward(self, descriptor: int) -> bool:
        """Send one piece of an output. Returns whether more data may be available."""
        try:
            data = os.read(descriptor, frames.MAX_PIECE_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._close_output(descriptor)
            return False
        self._send(self._outputs[descriptor][0], data, time.monotonic())
        return descriptor in self._outputs

    def _drain(self, descriptor: int) -> None:
        # Read at most the pipe's capacity: a daemon may keep the pipe open and write for ever.
        for _ in range(16):
            if not self._forward(descriptor):
                break
        if descriptor in self._outputs:
            self._close_output(descriptor)

    def _send(self, kind: bytes, payload: bytes, now: float) -> None:
        if self._kill_at is not None or self.is_finished:
            return
        try:
            self._channel.write(frames.encode(kind, payload))
        except ChannelLost:
            self._disconnect(now)

    def _update_events(self) -> None:
        """Register for the events that can be handled now. Outputs are read only if the channel accepts data."""
        if self.is_finished or self._kill_at is not None:
            return
        if self._is_end_sent and self._channel.is_drained:
            self.close()
            return
        self._registration.set_events(self._channel.events)
        for _, registration in self._outputs.values():
            registration.set_events(0 if self._channel.is_full else selectors.EVENT_READ)

    def _disconnect(self, now: float) -> None:
        """Close the connection and stop the processes that it has started."""
        self._release()
        self._deadline = None
        if not self._was_started:
            self.is_finished = True
        elif self._kill_at is None:
            self._kill_at = now + LOST_GRACE_SECONDS
            processes.signal_processes(processes.find_by_environment(self._id_variable), signal.SIGTERM)

    def _release(self) -> None:
        self._registration.close()
        self._channel.close()
        for descriptor in list(self._outputs):
            self._close_output(descriptor)

    def _close_output(self, descriptor: int) -> None:
        _, registration = self._outputs.pop(descriptor)
        registration.close()
        os.close(descriptor)
