"""A command that another node's mpirun wants run here: from the connection's first byte to the command's end."""

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
from muster_worker.remote.frames import BadFrame
from muster_worker.remote.tls_channel import Channel, ChannelLost
from muster_worker.remote.watch import Watch

FIRST_FRAME_SECONDS = 10.0
"""A connection that has not said by then what it wants is closed: it is a slow attacker, or nobody."""

LOST_GRACE_SECONDS = 2.0
"""From SIGTERM to SIGKILL for what a connection has started, once the connection is gone."""

SCAN_SECONDS = 0.05
"""Between two looks at what is still to be killed: whoever forks faster than this is met again."""

ID_VARIABLE = "MUSTER_CALL"
"""Set for everything that a call starts, so that it is found wherever it has gone."""

Begin = Callable[[str, str], Tuple[int, Tuple[int, int]]]
"""Starts a command that belongs to a call: its process and the read ends of its outputs. Raises `OSError`."""


class IncomingCall:
    """One connection. It is `over` when nothing is left to do for it."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        selector: selectors.BaseSelector,
        begin: Begin,
        now: float,
        *,
        from_peer: bool,
    ) -> None:
        self.name = name
        self.from_peer = from_peer  # by its address: no proof, but most others don't have one
        self.pid: Optional[int] = None  # of the command, while it runs
        self.over = False
        self.problem: Optional[str] = None  # why it came to nothing, where somebody should know
        self._channel = channel
        self._selector = selector
        self._begin = begin
        self._deadline: Optional[float] = now + FIRST_FRAME_SECONDS
        self._kill_at: Optional[float] = None  # the connection is gone: what it started is given until then
        self._ran = False  # something was started
        self._told = False  # the end of the command is on its way
        self._reader = frames.Reader(frames.RUN)
        self._outputs: Dict[int, Tuple[bytes, Watch]] = {}
        self._watch = Watch(selector, channel.socket.fileno(), self._on_channel)
        self._watch.want(channel.events)

    @property
    def is_stranger(self) -> bool:
        """Whether it has not said yet what it wants."""
        return self._deadline is not None and not self.over

    @property
    def next_step_at(self) -> Optional[float]:
        """When `step` has something to do; None while only events matter."""
        if self.over:
            return None
        return self._kill_at if self._kill_at is not None else self._deadline

    def step(self, now: float) -> None:
        """What is due now: the end of patience with a stranger, or with what a lost connection has left."""
        if self._deadline is not None and now >= self._deadline:
            self.problem = f"said nothing in {FIRST_FRAME_SECONDS:.0f} s"
            self._hang_up(now)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = now + SCAN_SECONDS
            if not processes.signal_all(processes.marked(self._mark), signal.SIGKILL) and self.pid is None:
                self.over = True

    def on_reaped(self, end: processes.Ended, now: float) -> None:
        """The command has ended: the rest of its output, and how."""
        self.pid = None
        for descriptor in list(self._outputs):
            self._drain(descriptor)
        if self.over or self._kill_at is not None:
            return
        kind, value = (frames.SIGNALLED, end.signal) if end.signal else (frames.EXITED, end.exit_code)
        self._send(kind, str(value).encode("ascii"), now)
        self._told = True
        self._settle()

    def drop(self, now: float) -> None:
        """Close the connection, whatever it wants."""
        self._hang_up(now)

    def close(self) -> None:
        """Let go of everything; no process of the rank group is left."""
        self._let_go()
        self.over = True

    @property
    def _mark(self) -> bytes:
        return f"{ID_VARIABLE}={self.name}".encode("ascii")

    def _on_channel(self) -> List[Event]:
        now = time.monotonic()
        try:
            for _, payload in self._reader.feed(self._channel.advance()):
                self._run(payload, now)
        except ChannelLost as lost:
            # port scans and agents that only prove that they reach us go away without a word
            self.problem = str(lost) if self.is_stranger and not self._reader.is_empty else None
            self.problem = str(lost) if "certificate" in str(lost) else self.problem
            self._hang_up(now)
        except BadFrame as bad:
            self.problem = str(bad)
            self._hang_up(now)
        else:
            self._settle()
        return []

    def _run(self, payload: bytes, now: float) -> None:
        if self._deadline is None:
            raise BadFrame("a second command on one connection")
        self._deadline = None
        try:
            self.pid, outputs = self._begin(os.fsdecode(payload), self.name)
        except (OSError, ValueError) as error:
            self._send(frames.REFUSED, f"the command can't be started: {error}".encode("utf-8", "replace")[:1000], now)
            self._told = True
            return
        self._ran = True
        for kind, descriptor in zip((frames.OUT, frames.ERR), outputs):
            os.set_blocking(descriptor, False)
            watch = Watch(self._selector, descriptor, partial(self._on_output, descriptor))
            self._outputs[descriptor] = (kind, watch)

    def _on_output(self, descriptor: int) -> List[Event]:
        if descriptor in self._outputs:
            self._pass_on(descriptor)
            self._settle()
        return []

    def _pass_on(self, descriptor: int) -> bool:
        """Send one piece of an output; whether there may be more."""
        try:
            data = os.read(descriptor, frames.MAX_PIECE_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._forget(descriptor)
            return False
        self._send(self._outputs[descriptor][0], data, time.monotonic())
        return descriptor in self._outputs

    def _drain(self, descriptor: int) -> None:
        # no more than a pipe holds: what has daemonized may hold it open, and write for ever
        for _ in range(16):
            if not self._pass_on(descriptor):
                break
        if descriptor in self._outputs:
            self._forget(descriptor)

    def _send(self, kind: bytes, payload: bytes, now: float) -> None:
        if self._kill_at is not None or self.over:
            return
        try:
            self._channel.write(frames.encode(kind, payload))
        except ChannelLost:
            self._hang_up(now)

    def _settle(self) -> None:
        """Wait for what there is to wait for: for outputs only while there is room for what they bring."""
        if self.over or self._kill_at is not None:
            return
        if self._told and self._channel.is_drained:
            self.close()
            return
        self._watch.want(self._channel.events)
        for _, watch in self._outputs.values():
            watch.want(0 if self._channel.is_full else selectors.EVENT_READ)

    def _hang_up(self, now: float) -> None:
        """The connection is gone: what it has started goes as well."""
        self._let_go()
        self._deadline = None
        if not self._ran:
            self.over = True
        elif self._kill_at is None:
            self._kill_at = now + LOST_GRACE_SECONDS
            processes.signal_all(processes.marked(self._mark), signal.SIGTERM)

    def _let_go(self) -> None:
        self._watch.close()
        self._channel.close()
        for descriptor in list(self._outputs):
            self._forget(descriptor)

    def _forget(self, descriptor: int) -> None:
        _, watch = self._outputs.pop(descriptor)
        watch.close()
        os.close(descriptor)
