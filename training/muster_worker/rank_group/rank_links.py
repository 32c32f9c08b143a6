"""A connection of a rank's wrapper or hook, with the rank's output."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import time
from typing import Collection, List, Mapping, Optional, Tuple

from muster_worker.agent.log import Log
from muster_worker.agent.state import ErrorSeen, Event, MetricRecord, RaisedError
from muster_worker.contract import wire
from muster_worker.rank import progress_file
from muster_worker.rank_group import progress
from muster_worker.rank_group.launcher_signals import LiveRank
from muster_worker.rank_group.link import EndedMessage, HelloMessage, Message, Receiver, RefusedMessage, StartedMessage
from muster_worker.rank_group.mean_speed import SpeedSamples
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.streams import Stream
from muster_worker.rank_group.tail import shorten

MAX_LINKS = 1024
"""Maximum number of connections: several for each of 128 ranks, because a rank's own processes can connect, too."""


def compute_max_links() -> int:
    """Return the maximum number of connections: `MAX_LINKS`, or fewer if the limit of file descriptors is low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each connection has two pipes. The agent also needs free descriptors, for example to read its token.
    return MAX_LINKS if soft == resource.RLIM_INFINITY else min(MAX_LINKS, soft // 4)


def listen(path: str) -> socket.socket:
    """Listen on the socket that wrappers connect to. Raises `OSError`."""
    # With `muster run` a killed agent leaves its socket to the next agent of its node.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(256)
    listener.setblocking(False)
    return listener


class RankLink:
    """One connection of a wrapper or hook, with the state of its rank and its output streams."""

    def __init__(self, connection: socket.socket) -> None:
        self.receiver = Receiver(connection)
        self.hello: Optional[HelloMessage] = None
        self.pid: Optional[int] = None  # of the rank, after its start
        self.peak_bytes: Optional[int] = None  # the rank's maximum memory, if a signal ended it
        self.is_finished = False  # the rank's end was reported
        self.lost_at: Optional[float] = None  # when the connection was lost, if the rank's end was not reported before
        self.streams: Tuple[Stream, ...] = ()
        self.command_line: Tuple[str, ...] = ()
        self.speed = SpeedSamples()
        self.has_logged_dropped_report = False  # the log says that a report was dropped
        self._printed_error: Optional[RaisedError] = None
        self._refusal: Tuple[str, ...] = ()

    @property
    def current_pid(self) -> int:
        """The rank's pid; the sender's pid before the rank has started; 0 before a hello."""
        if self.pid is not None:
            return self.pid
        return 0 if self.hello is None else self.hello.pid

    @property
    def running_pid(self) -> Optional[int]:
        """The rank's pid while it runs; None before its start and after its end."""
        return None if self.is_finished or self.lost_at is not None else self.pid

    def build_live_rank(self, descendants: Collection[int]) -> LiveRank:
        """Return the processes of the rank, which runs. A user's process could name any pid as its own."""
        python = None if self.hello is None else progress_file.find_claimer(self.hello.progress)
        wrapper = 0 if self.hello is None else self.hello.pid
        return LiveRank(wrapper, self.current_pid, python if python in descendants else None)

    @property
    def last_lines(self) -> Tuple[str, ...]:
        """The message of a refusal, or the last lines of standard error, or those of standard output."""
        if self._refusal:
            return self._refusal
        for stream in reversed(self.streams):
            lines = stream.tail.read_last_lines()
            if lines:
                return lines
        return ()

    def build_output_events(self, values: Mapping[str, float]) -> List[Event]:
        """Return the events of metrics that the output had, and of an error that it has had since the last call."""
        rank, now = self.hello.rank if self.hello is not None else -1, time.monotonic()
        events: List[Event] = [MetricRecord(name, value, rank, now) for name, value in values.items()]
        errors = [(stream.error, stream.has_aborted) for stream in self.streams if stream.error is not None]
        last, has_aborted = max(errors, key=lambda entry: entry[0].at, default=(None, False))
        if last is None or last is self._printed_error:
            return events
        self._printed_error = last
        # A Python with the hook would have reported the error if it had not handled it.
        is_hooked = self.hello is not None and progress.read(self.hello.progress).pid is not None
        return events if is_hooked and not has_aborted else [*events, ErrorSeen(rank, last)]

    @property
    def error_text(self) -> str:
        """The last part of standard error."""
        return self.streams[1].tail.text if self.streams else ""

    def receive(self, log: Log, metrics: MetricReader) -> List[Message]:
        """Read the available messages. Raises `wire.MalformedDocument`."""
        messages = []
        for incoming in self.receiver.receive():
            # A wrapper sends exactly one hello, as its first message.
            if isinstance(incoming.message, HelloMessage) != (self.hello is None):
                for descriptor in incoming.fds:
                    os.close(descriptor)
                raise wire.MalformedDocument("expected one hello, before anything else")
            self._update(incoming.message, incoming.fds, log, metrics)
            messages.append(incoming.message)
        return messages

    def set_prefix(self, prefix: str) -> None:
        """Change the prefix of the output: a child of this process is the rank."""
        for stream in self.streams:
            stream.prefix = prefix

    def _update(self, message: Message, descriptors: Tuple[int, ...], log: Log, metrics: MetricReader) -> None:
        if isinstance(message, HelloMessage):
            self.hello = message
            prefix = f"rank {message.rank}"
            self.streams = tuple(Stream(descriptor, prefix, log, metrics) for descriptor in descriptors)
        elif isinstance(message, StartedMessage):
            self.pid = message.pid
        elif isinstance(message, RefusedMessage):
            self.is_finished = True
            self._refusal = (shorten(message.message),)
        elif isinstance(message, EndedMessage):
            self.is_finished = True
            self.peak_bytes = message.peak_bytes
