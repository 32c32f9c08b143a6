"""A simulated agent: it speaks the shipped protocol with the collector at the shipped pace, and has no processes."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache

from muster_worker.agent.collector_client import CollectorUnavailable, compute_backoff, read_retry_after
from muster_worker.agent.exchange import POLL_SECONDS
from muster_worker.agent.node import FIRST_HEARTBEAT_SECONDS
from muster_worker.agent.report_delay import BRIEF_SECONDS
from muster_worker.contract import wire
from muster_worker.contract.schema import Command, CommandKind, Order, ReportAnswer
from simulated_agents.connection import Connection, Response, Target, is_success
from simulated_agents.report_template import Activity, Shape, fill

REQUEST_SECONDS, CONNECT_SECONDS = 10.0, 5.0
"""The time limits of the shipped agent."""

STEP_SECONDS = 0.5
_BRIEF = (Activity.STARTING, Activity.STOPPING)
_RUNNING = (Activity.STARTING, Activity.RUNNING, Activity.RANK_FAILED, Activity.STOPPING)


@dataclass(frozen=True)
class Timings:
    """How long the processes of a node take, in seconds: to start, to end after SIGTERM, and after a rank's failure."""

    start: float = 0.1
    stop: float = 0.04
    launcher: float = 0.1


@dataclass(frozen=True)
class Identity:
    """The node of an agent. `source` is the loopback address from which it connects, `address` the pod's address."""

    job: str
    job_uid: str
    node: int
    replacement: int
    procs: int
    launcher: str
    address: str
    source: str


@dataclass
class Counters:
    """The exchanges of all agents with the collector."""

    reports: int = 0
    polls: int = 0
    connections: int = 0
    errors: dict[str, int] = field(default_factory=dict)

    def count_error(self, reason: str) -> None:
        """Count a failed request by its reason."""
        self.errors[reason] = self.errors.get(reason, 0) + 1


@dataclass(frozen=True)
class Site:
    """What all agents share. `find_target` returns the current address of the collector's Service."""

    find_target: Callable[[], Target | None]
    timings: Timings
    counters: Counters


class Channel:
    """One of an agent's two connections to the collector."""

    def __init__(self, site: Site, source: str, get_token: Callable[[], Awaitable[str]]) -> None:
        self._site = site
        self._source = source
        self._get_token = get_token
        self._connection: Connection | None = None

    async def request(self, head: str, body: bytes, seconds: float) -> Response:
        """Send a request as the shipped client does. Raises `CollectorUnavailable`."""
        is_reused = self._connection is not None and self._connection.is_open
        request = await self._build_request(head, body)
        try:
            return self._check(await self._exchange(request, seconds))
        except OSError as error:
            # The server may close an idle connection at any time: try a new one.
            if not is_reused or isinstance(error, TimeoutError):
                raise self._make_unavailable(error) from None
        try:
            return self._check(await self._exchange(request, seconds))
        except OSError as error:
            raise self._make_unavailable(error) from None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    async def _build_request(self, head: str, body: bytes) -> bytes:
        target = self._site.find_target()
        host = "" if target is None else f"{target.name}:{target.address[1]}"
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        headers = (
            f"Host: {host}\r\nAccept-Encoding: deflate\r\n{length}"
            f"Authorization: Bearer {await self._get_token()}\r\nContent-Type: application/json\r\n\r\n"
        )
        return f"{head} HTTP/1.1\r\n{headers}".encode("ascii") + body

    async def _exchange(self, request: bytes, seconds: float) -> Response:
        if self._connection is None or not self._connection.is_open:
            target = self._site.find_target()
            if target is None:
                raise ConnectionRefusedError("the Service has no endpoint")
            self._connection = await Connection.open(target, self._source, CONNECT_SECONDS)
            self._site.counters.connections += 1
        return await self._connection.exchange(request, seconds)

    def _check(self, response: Response) -> Response:
        if is_success(response):
            return response
        self._site.counters.count_error(f"{response.status} {response.body[:80].decode('ascii', 'replace')}")
        raise CollectorUnavailable(str(response.status), read_retry_after(response.status, response.retry_after))

    def _make_unavailable(self, error: OSError) -> CollectorUnavailable:
        self._site.counters.count_error(type(error).__name__)
        return CollectorUnavailable(str(error))


class Agent:
    """The agent of one pod. `run` ends after the operator's command to exit; `close` ends it at once."""

    def __init__(self, identity: Identity, site: Site, get_token: Callable[[], Awaitable[str]]) -> None:
        self.identity = identity
        self.activity = Activity.WAITING
        self.attempt = 0
        self.failed_rank: int | None = None
        self.reported_at = self.polled_at = float("-inf")
        self._site = site
        self._channels = tuple(Channel(site, identity.source, get_token) for _ in range(2))
        self._first_rank = 0
        self.started_at = self._ended_at = self._failed_at = 0.0
        self._order: Order | None = None
        self._is_exiting = False
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Report and obey commands until the agent may exit."""
        polls = asyncio.create_task(self._poll())
        try:
            await self._report()
        finally:
            polls.cancel()
            if self._timer is not None:
                self._timer.cancel()
            for channel in self._channels:
                channel.close()

    @property
    def runs(self) -> bool:
        """Whether all ranks run."""
        return self.activity is Activity.RUNNING

    def fail(self, local_rank: int) -> float:
        """Let a rank fail now, and return the time (monotonic seconds)."""
        self.failed_rank, self._failed_at = local_rank, time.monotonic()
        self._change(Activity.RANK_FAILED)
        self._change_later(self._site.timings.launcher, Activity.FAILED)
        return self._failed_at

    async def _report(self) -> None:
        sequence, heartbeat = 0, FIRST_HEARTBEAT_SECONDS
        while True:
            self._changed.clear()
            sequence, acknowledged, heartbeat = await self._send_newest(sequence)
            if self._is_exiting and acknowledged not in _RUNNING and self.activity is acknowledged:
                return
            try:
                async with asyncio.timeout(heartbeat):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _send_newest(self, sequence: int) -> tuple[int, Activity, float]:
        """Send the newest state until the collector has it. Return its sequence number, and the next interval."""
        failures = 0
        while True:
            sequence += 1
            activity, sent_at = self.activity, time.monotonic()
            try:
                response = await self._channels[0].request(
                    "POST /v1/report", self._build_report(sequence, sent_at), REQUEST_SECONDS
                )
            except CollectorUnavailable as error:
                await asyncio.sleep(compute_backoff(failures, error.retry_after, random.random()))  # noqa: S311 - jitter
                failures += 1
                continue
            self.reported_at = sent_at
            self._site.counters.reports += 1
            return sequence, activity, _decode_answer(response.body).heartbeat_seconds

    def _build_report(self, sequence: int, now: float) -> bytes:
        identity, running_for = self.identity, now - self.started_at
        numbers: dict[str, int | float | str] = {
            "job_uid": identity.job_uid,
            "node": identity.node,
            "replacement": identity.replacement,
            "attempt": self.attempt,
            "sequence": sequence,
            "address": identity.address,
            "started_age": running_for,
            "ended_age": now - self._ended_at,
            "failed_age": now - self._failed_at,
            "step": 1 + int(running_for / STEP_SECONDS),
            "step_age": running_for % STEP_SECONDS,
            "first_step_age": running_for,
        }
        shape = Shape(identity.procs, identity.launcher, self.activity, self.failed_rank)
        return fill(shape, numbers, self._first_rank)

    async def _poll(self) -> None:
        after: Order | None = None
        failures = 0
        while True:
            order = "" if after is None else f"after={'.'.join(map(str, after))}&"
            sent_at = time.monotonic()
            try:
                response = await self._channels[1].request(
                    f"GET /v1/command?{order}wait={POLL_SECONDS}", b"", POLL_SECONDS + REQUEST_SECONDS
                )
            except CollectorUnavailable as error:
                await asyncio.sleep(compute_backoff(failures, error.retry_after, random.random()))  # noqa: S311 - jitter
                failures += 1
                continue
            failures, self.polled_at = 0, sent_at
            self._site.counters.polls += 1
            if response.body:
                command, node_ranks = _decode_command(response.body)
                after = command.order if after is None else max(after, command.order)
                if command.job_uid == self.identity.job_uid and (self._order is None or command.order > self._order):
                    self._order = command.order
                    self._obey(command, node_ranks)

    def _obey(self, command: Command, node_ranks: dict[int, int]) -> None:
        if command.kind == CommandKind.START:
            self._start(command.attempt, node_ranks[self.identity.node])
            return
        if command.kind == CommandKind.EXIT:
            self._is_exiting = True
        if self.activity is Activity.WAITING:
            self._change(Activity.NOT_STARTED)
        elif self.activity in _RUNNING:
            self._change(Activity.STOPPING)
            self._change_later(self._site.timings.stop, Activity.STOPPED)
        else:
            self._changed.set()

    def _start(self, attempt: int, node_rank: int) -> None:
        if self._is_exiting or self.activity in _RUNNING or attempt <= self.attempt:
            return
        self.attempt, self.failed_rank = attempt, None
        self._first_rank = node_rank * self.identity.procs
        self._change(Activity.STARTING)
        self._change_later(self._site.timings.start, Activity.RUNNING)

    def _change_later(self, seconds: float, activity: Activity) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._change, activity)

    def _change(self, activity: Activity) -> None:
        self.activity = activity
        if activity is Activity.RUNNING:
            self.started_at = time.monotonic()
        if activity in (Activity.STOPPED, Activity.FAILED):
            self._ended_at = time.monotonic()
        if activity in _BRIEF:
            asyncio.get_running_loop().call_later(BRIEF_SECONDS, self._changed.set)
        else:
            self._changed.set()


@lru_cache(maxsize=64)
def _decode_answer(body: bytes) -> ReportAnswer:
    return wire.decode(ReportAnswer, body)


@lru_cache(maxsize=64)
def _decode_command(body: bytes) -> tuple[Command, dict[int, int]]:
    """Decode a command, and find the node ranks of the members. All agents of a job get the same bytes."""
    command = wire.decode(Command, body)
    return command, {peer.node: rank for rank, peer in enumerate(command.peers)}
