"""Who says to be a rank on this node: a connection of a wrapper or a hook, and the output it brings."""

from __future__ import annotations

import os
import resource
import socket
from typing import List, Optional, Tuple

from muster_worker.agent.log import Log
from muster_worker.contract import wire
from muster_worker.rank_group.link import Ended, Hello, Message, Receiver, Refused, Started
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.streams import Stream
from muster_worker.rank_group.tail import shorten

MAX_LINKS = 1024
"""Connections at a time: several for each of 128 ranks. A rank's own processes can reach the socket as well."""


def most_links() -> int:
    """How many connections are taken at a time: `MAX_LINKS`, or what leaves the agent descriptors for its own work."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # a connection brings two pipes; with none left the agent could not even read its token
    return MAX_LINKS if soft == resource.RLIM_INFINITY else min(MAX_LINKS, soft // 4)


def listen(path: str) -> socket.socket:
    """The socket that wrappers connect to. Raises `OSError`."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(256)
    listener.setblocking(False)
    return listener


class RankLink:
    """One wrapper's or hook's connection: what it said so far and what it brought."""

    def __init__(self, connection: socket.socket) -> None:
        self.receiver = Receiver(connection)
        self.hello: Optional[Hello] = None
        self.pid: Optional[int] = None  # of the rank, once started
        self.peak_bytes: Optional[int] = None  # the most memory that the rank had, once a signal has ended it
        self.over = False  # it is known how the rank ended
        self.lost_at: Optional[float] = None  # the connection ended before the rank did
        self.streams: Tuple[Stream, ...] = ()
        self.command_line: Tuple[str, ...] = ()
        self.told_full = False  # the job's owner knows that its reports don't fit
        self._refusal: Tuple[str, ...] = ()

    @property
    def process(self) -> int:
        """The rank's process; before that has started who speaks for it, and 0 before anybody does."""
        if self.pid is not None:
            return self.pid
        return 0 if self.hello is None else self.hello.pid

    @property
    def last_lines(self) -> Tuple[str, ...]:
        """Why it was refused; else of standard error; of standard output when there was none."""
        if self._refusal:
            return self._refusal
        for stream in reversed(self.streams):
            lines = stream.tail.last_lines()
            if lines:
                return lines
        return ()

    @property
    def error_text(self) -> str:
        """All that is kept of standard error."""
        return self.streams[1].tail.text if self.streams else ""

    def receive(self, log: Log, metrics: MetricReader) -> List[Message]:
        """The messages that have come, the hello before all others. Raises `wire.Malformed`."""
        messages = []
        for incoming in self.receiver.receive():
            # one hello, and it comes first: anything else is not from a wrapper of ours
            if isinstance(incoming.message, Hello) != (self.hello is None):
                for descriptor in incoming.fds:
                    os.close(descriptor)
                raise wire.Malformed("expected one hello, before anything else")
            self._note(incoming.message, incoming.fds, log, metrics)
            messages.append(incoming.message)
        return messages

    def rename(self, prefix: str) -> None:
        """From now on the output is somebody else's: a process inside turned out to be the rank."""
        for stream in self.streams:
            stream.prefix = prefix

    def _note(self, message: Message, descriptors: Tuple[int, ...], log: Log, metrics: MetricReader) -> None:
        if isinstance(message, Hello):
            self.hello = message
            prefix = f"rank {message.rank}"
            self.streams = tuple(Stream(descriptor, prefix, log, metrics) for descriptor in descriptors)
        elif isinstance(message, Started):
            self.pid = message.pid
        elif isinstance(message, Refused):
            self.over = True
            self._refusal = (shorten(message.message),)
        elif isinstance(message, Ended):
            self.over = True
            self.peak_bytes = message.peak_bytes
