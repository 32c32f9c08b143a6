"""The agent's two threads for the collector: one sends reports, the other polls for commands."""

from __future__ import annotations

import os
import queue
import random
import threading
import time
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

from muster_worker.agent.collector_client import CollectorClient, CollectorUnavailable, compute_backoff
from muster_worker.agent.reports import Snapshot, encode_report, make_report
from muster_worker.contract.schema import Command, Order

POLL_SECONDS = 20
"""Length of one long poll: below the idle timeout of common proxies (60 s)."""


@dataclass(frozen=True)
class ReportAcknowledged:
    """The collector has received a report with this attempt and phase. Its answer sets the heartbeat interval."""

    attempt: int
    phase: str
    heartbeat_seconds: float


@dataclass(frozen=True)
class CollectorUnreachable:
    """A report could not be delivered. The reporter retries."""

    reason: str


@dataclass(frozen=True)
class NodeCutOff:
    """This node may have been replaced, so its ranks have to stop."""

    reason: str


Message = Union[ReportAcknowledged, CollectorUnreachable, NodeCutOff, Command]


class Inbox:
    """Messages from the two threads to the node. `descriptor` becomes readable when a message may be waiting."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.descriptor, self._wake_writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._wake_writer, False)

    def put(self, message: Message) -> None:
        """Add a message. The threads call this."""
        self._queue.put(message)
        try:
            os.write(self._wake_writer, b"\0")
        except BlockingIOError:
            pass  # the pipe is full of wake-ups, so the node wakes up anyway

    def take(self) -> Tuple[Message, ...]:
        """Remove and return all messages. The node calls this."""
        try:
            os.read(self.descriptor, 4096)
        except BlockingIOError:
            pass  # the pipe is empty: a timer woke the node first
        messages: List[Message] = []
        while True:
            try:
                messages.append(self._queue.get_nowait())
            except queue.Empty:
                return tuple(messages)


class Reporter:
    """Sends the newest snapshot, one report at a time. A newer snapshot replaces the snapshot that waits."""

    def __init__(self, client: CollectorClient, inbox: Inbox) -> None:
        self._client = client
        self._inbox = inbox
        self._newest_snapshot: Optional[Snapshot] = None
        self._condition = threading.Condition()
        threading.Thread(target=self._run, name="reports", daemon=True).start()

    def submit(self, snapshot: Snapshot) -> None:
        """Set the snapshot to send next."""
        with self._condition:
            self._newest_snapshot = snapshot
            self._condition.notify()

    def _run(self) -> None:
        sequence = 0
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._newest_snapshot is not None)
            failures = 0
            while True:
                sequence += 1
                snapshot = self._take_newest()
                wait = self._send(snapshot, sequence, failures)
                if wait is None:
                    break
                failures += 1
                time.sleep(wait)
                self._put_back(snapshot)

    def _take_newest(self) -> Snapshot:
        with self._condition:
            snapshot, self._newest_snapshot = self._newest_snapshot, None
        if snapshot is None:
            raise AssertionError("only this thread takes snapshots")
        return snapshot

    def _put_back(self, snapshot: Snapshot) -> None:
        with self._condition:
            if self._newest_snapshot is None:
                self._newest_snapshot = snapshot

    def _send(self, snapshot: Snapshot, sequence: int, failures: int) -> Optional[float]:
        try:
            # Each retry computes the ages again.
            answer = self._client.send_report(encode_report(make_report(snapshot, sequence, time.monotonic())))
        except CollectorUnavailable as error:
            self._inbox.put(CollectorUnreachable(str(error)))
            return compute_backoff(failures, error.retry_after, random.random())  # noqa: S311 - jitter, not security
        state = snapshot.state
        self._inbox.put(ReportAcknowledged(state.attempt, state.phase, answer.heartbeat_seconds))
        return None


class CommandPoller:
    """Polls for commands with one long poll after the other."""

    def __init__(self, client: CollectorClient, inbox: Inbox) -> None:
        self._client = client
        self._inbox = inbox
        threading.Thread(target=self._run, name="commands", daemon=True).start()

    def _run(self) -> None:
        after: Optional[Order] = None
        failures = 0
        while True:
            try:
                command = self._client.poll_command(after, POLL_SECONDS)
            except CollectorUnavailable as error:
                time.sleep(compute_backoff(failures, error.retry_after, random.random()))  # noqa: S311 - jitter, not security
                failures += 1
                continue
            failures = 0
            if command is not None:
                after = command.order if after is None else max(after, command.order)
                self._inbox.put(command)
