"""The two conversations with the collector, each in a thread so that neither holds up the node."""

from __future__ import annotations

import os
import queue
import random
import threading
import time
from dataclasses import dataclass
from typing import Optional, Tuple, Union

from muster_worker.agent.collector_client import CollectorClient, Unavailable, backoff
from muster_worker.agent.reports import Snapshot, encode_report, make_report
from muster_worker.contract.schema import Command, Order

POLL_SECONDS = 20
"""How long one question for a command stays open: below the idle limits of common proxies (60 s)."""


@dataclass(frozen=True)
class Acknowledged:
    """The collector has this phase of this attempt, and wants to hear again after so many seconds."""

    attempt: int
    phase: str
    heartbeat_seconds: float


@dataclass(frozen=True)
class Unreachable:
    """A report could not be delivered; it is tried again."""

    why: str


News = Union[Acknowledged, Unreachable, Command]


class Inbox:
    """What the threads have for the node; `descriptor` is readable while something may be there."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[News] = queue.SimpleQueue()
        self.descriptor, self._wake = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._wake, False)

    def put(self, news: News) -> None:
        """Called by the threads."""
        self._queue.put(news)
        try:
            os.write(self._wake, b"\0")
        except BlockingIOError:
            pass  # full of wake-ups already

    def take(self) -> Tuple[News, ...]:
        """Called by the node: all that is there."""
        try:
            os.read(self.descriptor, 4096)
        except BlockingIOError:
            pass  # a timer woke the node first
        news = []
        while True:
            try:
                news.append(self._queue.get_nowait())
            except queue.Empty:
                return tuple(news)


class Reporter:
    """Sends the newest snapshot: at most one report is under way, and what happens meanwhile goes into the next."""

    def __init__(self, client: CollectorClient, inbox: Inbox) -> None:
        self._client = client
        self._inbox = inbox
        self._newest: Optional[Snapshot] = None
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="reports", daemon=True).start()

    def offer(self, snapshot: Snapshot) -> None:
        """Make this what is sent next."""
        with self._changed:
            self._newest = snapshot
            self._changed.notify()

    def _run(self) -> None:
        sequence = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._newest is not None)
            failures = 0
            while True:
                sequence += 1
                snapshot = self._take()
                wait = self._send(snapshot, sequence, failures)
                if wait is None:
                    break
                failures += 1
                time.sleep(wait)
                self._give_back(snapshot)

    def _take(self) -> Snapshot:
        with self._changed:
            snapshot, self._newest = self._newest, None
        if snapshot is None:
            raise AssertionError("only this thread takes snapshots")
        return snapshot

    def _give_back(self, snapshot: Snapshot) -> None:
        with self._changed:
            if self._newest is None:
                self._newest = snapshot

    def _send(self, snapshot: Snapshot, sequence: int, failures: int) -> Optional[float]:
        try:
            # ages are counted up to this try, however often it was tried before
            answer = self._client.report(encode_report(make_report(snapshot, sequence, time.monotonic())))
        except Unavailable as error:
            self._inbox.put(Unreachable(str(error)))
            return backoff(failures, error.wait, random.random())  # noqa: S311 - spreads load, hides nothing
        state = snapshot.state
        self._inbox.put(Acknowledged(state.attempt, state.phase, answer.heartbeat_seconds))
        return None


class Listener:
    """Asks for commands, one long question after the other."""

    def __init__(self, client: CollectorClient, inbox: Inbox) -> None:
        self._client = client
        self._inbox = inbox
        threading.Thread(target=self._run, name="commands", daemon=True).start()

    def _run(self) -> None:
        after: Optional[Order] = None
        failures = 0
        while True:
            try:
                command = self._client.command(after, POLL_SECONDS)
            except Unavailable as error:
                time.sleep(backoff(failures, error.wait, random.random()))  # noqa: S311 - spreads load, hides nothing
                failures += 1
                continue
            failures = 0
            if command is not None:
                after = command.order if after is None else max(after, command.order)
                self._inbox.put(command)
