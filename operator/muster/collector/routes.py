"""Handle the collector's requests: POST /v1/report and GET /v1/command."""

import json
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus

from aiohttp import web

from muster.collector.command_sender import CommandSender
from muster.collector.heartbeat import heartbeat_seconds
from muster.collector.pod_directory import Member
from muster.collector.polls import Polls
from muster.collector.server.admission import UNKNOWN_POD_SECONDS, Admission, AuthenticatedPod
from muster.collector.server.bodies import Bodies
from muster.collector.server.cpu_budgets import CpuBudgets
from muster.collector.server.decode_queue import DecodeQueue
from muster.collector.server.refusal import RESPONSES, Reason, RequestRefused
from muster.collector.server.refusal_counter import RefusalCounter
from muster.collector.store import RankStore, UnknownJob
from muster.collector.trust.tokens import PodClaim
from muster.core.reports.check import ImplausibleReport
from muster.core.reports.report_size import ReportTooLarge, check_report_size
from muster_worker.contract import wire
from muster_worker.contract.schema import CommandKind, Order, Report, ReportAnswer

MAX_WAIT_SECONDS = 30
"""The maximum duration of a long poll: below the idle timeouts of common proxies."""

_HEADERS = {"Server": "muster", "Cache-Control": "no-store"}
_CLOSING_REASONS = frozenset(
    {
        Reason.NOT_LEADER,
        Reason.TOO_LARGE,
        Reason.TOO_SLOW,
        Reason.CROWDED_OUT,
        Reason.LENGTH_REQUIRED,
        Reason.COMPRESSED,
        Reason.BAD_HTTP,
    }
)
_LEADER_UNKNOWN = "the leader is not known yet."
_ORDER = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d)", re.ASCII)
_WAIT = re.compile(r"\d{1,4}", re.ASCII)


class Routes:
    """Handles requests. `refusals` counts refused requests, `cpu` the processor time; `clock` returns Unix seconds.

    `body_seconds` limits the time for a body. Every request is refused until `lead` is called.
    """

    def __init__(
        self,
        *,
        store: RankStore,
        admission: Admission,
        clock: Callable[[], float],
        refusals: RefusalCounter,
        cpu: CpuBudgets,
        body_seconds: float,
    ) -> None:
        self._store = store
        self._admission = admission
        self._clock = clock
        self._body_seconds = body_seconds
        self._refusals = refusals
        self._cpu = cpu
        self._bodies = Bodies()
        self._decode_queue = DecodeQueue(lambda namespace: cpu.namespace_balance(namespace, time.monotonic()))
        self._polls = Polls(store)
        self._command_sender = CommandSender(_HEADERS)
        self._holds_lease = _never
        self._leader = _LEADER_UNKNOWN

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle one request."""
        try:
            self._require_leading()
            # check the token first: without a valid token, a client doesn't even learn which paths exist
            authenticated = self._admission.admit(request, self._clock())
        except RequestRefused as error:
            return self._refuse(error, request.remote or "")
        pod = authenticated.pod
        try:
            return await self._route(request, authenticated)
        except RequestRefused as error:
            return self._refuse(error, pod.pod_name, pod.namespace)
        except UnknownJob:
            return self._refuse(RequestRefused(Reason.UNKNOWN_POD, UNKNOWN_POD_SECONDS), pod.pod_name, pod.namespace)

    def lead(self, holds_lease: Callable[[], bool]) -> None:
        """Handle requests as the leader, as long as this process holds the Lease."""
        self._holds_lease = holds_lease

    def step_down(self, leader: str | None) -> None:
        """Refuse all requests, and end long polls; `leader` is the new leader (None: unknown)."""
        self._holds_lease = _never
        self._leader = _LEADER_UNKNOWN if leader is None else f"{leader} is."
        self._polls.close()

    def close(self) -> None:
        """End all long polls now."""
        self._polls.close()

    def _require_leading(self) -> None:
        if not self._holds_lease():
            raise RequestRefused(Reason.NOT_LEADER, detail=self._leader)

    async def _route(self, request: web.BaseRequest, authenticated: AuthenticatedPod) -> web.StreamResponse:
        wait = self._cpu.wait(authenticated.pod.namespace, authenticated.pod.pod_uid, time.monotonic())
        if wait > 0.0:
            raise RequestRefused(Reason.TOO_BUSY, wait)
        match request.method, request.path:
            case "POST", "/v1/report":
                return await self._report(request, authenticated)
            case "GET", "/v1/command":
                return await self._command(request, authenticated)
        raise RequestRefused(Reason.NOT_FOUND)

    async def _report(self, request: web.BaseRequest, authenticated: AuthenticatedPod) -> web.Response:
        procs = self._store.shape(authenticated.member.job_uid).procs_per_node
        max_bytes = wire.max_report_bytes(procs)
        async with self._bodies.read(request, authenticated.pod, max_bytes, self._body_seconds) as body:
            # the report's ages are relative to the arrival of its last byte
            at = self._clock()
            async with self._decode_queue.turn(authenticated.pod.namespace):
                with self._charge_cpu(authenticated.pod):
                    self._require_leading()
                    self._record_report(body, authenticated.member, procs, at)
        return _json(_encode_answer(heartbeat_seconds(self._store.agent_count())))

    def _record_report(self, body: bytes, member: Member, procs: int, at: float) -> None:
        try:
            check_report_size(body, procs)
            report = wire.decode(Report, body)
        except (ReportTooLarge, wire.MalformedDocument):
            raise RequestRefused(Reason.MALFORMED) from None
        if report.job_uid != member.job_uid:
            raise RequestRefused(Reason.OTHER_JOB)
        if (report.node, report.replacement) != (member.node, member.replacement):
            raise RequestRefused(Reason.OTHER_POD)
        try:
            self._store.record(member, report, at)
        except ImplausibleReport as error:
            raise RequestRefused(Reason.IMPLAUSIBLE, detail=str(error)) from None

    @contextmanager
    def _charge_cpu(self, pod: PodClaim) -> Iterator[None]:
        started_at = time.thread_time()
        try:
            yield
        finally:
            self._cpu.charge_pod(pod.namespace, pod.pod_uid, time.thread_time() - started_at, time.monotonic())

    async def _command(self, request: web.BaseRequest, authenticated: AuthenticatedPod) -> web.StreamResponse:
        after, wait = _read_query(request)
        member = authenticated.member
        command = await self._polls.wait(authenticated.pod.pod_uid, member.job_uid, member.node, after, wait)
        self._require_leading()
        if command is None:
            return web.Response(status=HTTPStatus.NO_CONTENT, headers=_HEADERS)
        return await self._command_sender.send(request, authenticated.pod.namespace, command)

    def _refuse(self, error: RequestRefused, source: str, namespace: str = "") -> web.Response:
        self._refusals.count(error.reason, source, namespace)
        return refusal_response(error)


def _never() -> bool:
    return False


def refusal_response(error: RequestRefused) -> web.Response:
    """Return the response to a refused request: a status and one sentence as JSON."""
    response_text = RESPONSES[error.reason]
    headers = dict(_HEADERS)
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if response_text.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    sentence = response_text.sentence if error.detail is None else f"{response_text.sentence} {error.detail}"
    response = web.Response(
        body=json.dumps({"error": sentence}).encode(),
        status=response_text.status,
        headers=headers,
        content_type="application/json",
    )
    # close the connection if the token is not valid, or because the next connection may reach the leader
    if response_text.status == HTTPStatus.UNAUTHORIZED or error.reason in _CLOSING_REASONS:
        response.force_close()
    return response


def _read_query(request: web.BaseRequest) -> tuple[Order | None, int]:
    query = request.query
    if not set(query) <= {"after", "wait"} or len(query) != len(set(query)):
        raise RequestRefused(Reason.MALFORMED)
    wait = query.get("wait", "0")
    if not _WAIT.fullmatch(wait):
        raise RequestRefused(Reason.MALFORMED)
    return _read_order(query.get("after")), min(int(wait), MAX_WAIT_SECONDS)


def _read_order(text: str | None) -> Order | None:
    if text is None:
        return None
    match = _ORDER.fullmatch(text)
    if match is None or int(match[3]) >= len(CommandKind.ALL):
        raise RequestRefused(Reason.MALFORMED)
    return (int(match[1]), int(match[2]), int(match[3]))


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, headers=_HEADERS, content_type="application/json")


@lru_cache(maxsize=16)
def _encode_answer(heartbeat: float) -> bytes:
    return wire.encode(ReportAnswer(heartbeat))
