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

from muster.collector.agent_memory import NoMemory
from muster.collector.command_sender import CommandSender
from muster.collector.pod_directory import PodIdentity
from muster.collector.polls import LongPolls
from muster.collector.server.authentication import UNKNOWN_POD_SECONDS, AuthenticatedPod, Authenticator
from muster.collector.server.bodies import BodyReader
from muster.collector.server.cpu_budgets import CpuBudgets
from muster.collector.server.decode_queue import DecodeQueue
from muster.collector.server.refusal import RESPONSES, RefusalReason, RequestRefused
from muster.collector.server.refusal_counter import RefusalCounter
from muster.collector.store import RankStore, UnknownJob
from muster.collector.trust.tokens import PodClaim
from muster.core.reports.check import ImplausibleReport
from muster.core.reports.report_size import ReportTooLarge, check_report_size
from muster_worker.contract import wire
from muster_worker.contract.schema import CommandKind, Order, Report, ReportAnswer

MAX_WAIT_SECONDS = 30
"""The maximum duration of a long poll: below the idle timeouts of common proxies."""

NO_MEMORY_SECONDS = 10.0
"""When an agent sends its report again for which no memory was left."""

_HEADERS = {"Server": "muster", "Cache-Control": "no-store"}
_CLOSING_REASONS = frozenset(
    {
        RefusalReason.NOT_LEADER,
        RefusalReason.TOO_LARGE,
        RefusalReason.TOO_SLOW,
        RefusalReason.CROWDED_OUT,
        RefusalReason.LENGTH_REQUIRED,
        RefusalReason.COMPRESSED,
        RefusalReason.BAD_HTTP,
    }
)
_LEADER_UNKNOWN = "the leader is not known yet."
_ORDER = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d)", re.ASCII)
_WAIT = re.compile(r"\d{1,4}", re.ASCII)


class Routes:
    """Handles requests. `refusals` counts refused requests, `cpu` the processor time; `clock` returns Unix seconds.

    `body_seconds` limits the time for a body. Every request is refused until `start_leading` is called.
    """

    def __init__(
        self,
        *,
        store: RankStore,
        authenticator: Authenticator,
        clock: Callable[[], float],
        refusals: RefusalCounter,
        cpu: CpuBudgets,
        body_seconds: float,
    ) -> None:
        self._store = store
        self._authenticator = authenticator
        self._clock = clock
        self._body_seconds = body_seconds
        self._refusals = refusals
        self._cpu = cpu
        self._body_reader = BodyReader()
        self._decode_queue = DecodeQueue(lambda namespace: cpu.get_namespace_balance(namespace, time.monotonic()))
        self._polls = LongPolls(store)
        self._command_sender = CommandSender(_HEADERS)
        self._holds_lease = _does_not_lead
        self._leader = _LEADER_UNKNOWN

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle one request."""
        try:
            self._check_leading()
            # check the token first, so that a client without a valid token doesn't learn which paths exist
            authenticated_pod = self._authenticator.authenticate(request, self._clock())
        except RequestRefused as error:
            return self._refuse(error, request.remote or "")
        pod = authenticated_pod.pod
        try:
            return await self._route(request, authenticated_pod)
        except RequestRefused as error:
            return self._refuse(error, pod.pod_name, pod.namespace)
        except UnknownJob:
            return self._refuse(
                RequestRefused(RefusalReason.UNKNOWN_POD, UNKNOWN_POD_SECONDS), pod.pod_name, pod.namespace
            )

    def start_leading(self, holds_lease: Callable[[], bool]) -> None:
        """Handle requests as the leader, as long as this process holds the Lease."""
        self._holds_lease = holds_lease

    def step_down(self, leader: str | None) -> None:
        """Refuse all requests, and end long polls; `leader` is the new leader (None: unknown)."""
        self._holds_lease = _does_not_lead
        self._leader = _LEADER_UNKNOWN if leader is None else f"{leader} is."
        self._polls.close()

    def close(self) -> None:
        """End all long polls now."""
        self._polls.close()

    def _check_leading(self) -> None:
        if not self._holds_lease():
            raise RequestRefused(RefusalReason.NOT_LEADER, detail=self._leader)

    async def _route(self, request: web.BaseRequest, authenticated_pod: AuthenticatedPod) -> web.StreamResponse:
        wait = self._cpu.get_wait_seconds(
            authenticated_pod.pod.namespace, authenticated_pod.pod.pod_uid, time.monotonic()
        )
        if wait > 0.0:
            raise RequestRefused(RefusalReason.TOO_BUSY, wait)
        match request.method, request.path:
            case "POST", "/v1/report":
                return await self._handle_report(request, authenticated_pod)
            case "GET", "/v1/command":
                return await self._handle_command(request, authenticated_pod)
        raise RequestRefused(RefusalReason.NOT_FOUND)

    async def _handle_report(self, request: web.BaseRequest, authenticated_pod: AuthenticatedPod) -> web.Response:
        procs = self._store.get_shape(authenticated_pod.pod_identity.job_uid).procs_per_node
        max_bytes = wire.compute_max_report_bytes(procs)
        async with self._body_reader.read(request, authenticated_pod.pod, max_bytes, self._body_seconds) as body:
            # the ages in the report are relative to the arrival of its last byte
            at = self._clock()
            async with self._decode_queue.wait_for_turn(authenticated_pod.pod.namespace):
                with self._charge_cpu(authenticated_pod.pod):
                    self._check_leading()
                    heartbeat_seconds = self._record_report(body, authenticated_pod.pod_identity, procs, at)
        return _make_json_response(_encode_report_response(heartbeat_seconds))

    def _record_report(self, body: bytes, pod_identity: PodIdentity, procs: int, at: float) -> float:
        try:
            check_report_size(body, procs)
            report = wire.decode(Report, body)
        except (ReportTooLarge, wire.MalformedDocument):
            raise RequestRefused(RefusalReason.MALFORMED) from None
        if report.job_uid != pod_identity.job_uid:
            raise RequestRefused(RefusalReason.OTHER_JOB)
        if (report.node, report.replacement) != (pod_identity.node, pod_identity.replacement):
            raise RequestRefused(RefusalReason.OTHER_POD)
        try:
            return self._store.record_report(pod_identity, report, at)
        except ImplausibleReport as error:
            raise RequestRefused(RefusalReason.IMPLAUSIBLE, detail=str(error)) from None
        except NoMemory:
            raise RequestRefused(RefusalReason.NO_MEMORY, NO_MEMORY_SECONDS) from None

    @contextmanager
    def _charge_cpu(self, pod: PodClaim) -> Iterator[None]:
        started_at = time.thread_time()
        try:
            yield
        finally:
            self._cpu.charge_pod(pod.namespace, pod.pod_uid, time.thread_time() - started_at, time.monotonic())

    async def _handle_command(
        self, request: web.BaseRequest, authenticated_pod: AuthenticatedPod
    ) -> web.StreamResponse:
        after, wait = _read_query(request)
        pod_identity = authenticated_pod.pod_identity
        command = await self._polls.wait_for_command(
            authenticated_pod.pod.pod_uid, pod_identity.job_uid, pod_identity.node, after, wait
        )
        self._check_leading()
        if command is None:
            return web.Response(status=HTTPStatus.NO_CONTENT, headers=_HEADERS)
        return await self._command_sender.send(request, authenticated_pod.pod.namespace, command)

    def _refuse(self, error: RequestRefused, source: str, namespace: str = "") -> web.Response:
        self._refusals.count(error.reason, source, namespace)
        return make_refusal_response(error)


def _does_not_lead() -> bool:
    return False


def make_refusal_response(error: RequestRefused) -> web.Response:
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
    # close the connection of a client without a valid token, and one whose next connection may reach the leader
    if response_text.status == HTTPStatus.UNAUTHORIZED or error.reason in _CLOSING_REASONS:
        response.force_close()
    return response


def _read_query(request: web.BaseRequest) -> tuple[Order | None, int]:
    query = request.query
    if not set(query) <= {"after", "wait"} or len(query) != len(set(query)):
        raise RequestRefused(RefusalReason.MALFORMED)
    wait = query.get("wait", "0")
    if not _WAIT.fullmatch(wait):
        raise RequestRefused(RefusalReason.MALFORMED)
    return _read_order(query.get("after")), min(int(wait), MAX_WAIT_SECONDS)


def _read_order(text: str | None) -> Order | None:
    if text is None:
        return None
    match = _ORDER.fullmatch(text)
    if match is None or int(match[3]) >= len(CommandKind.ALL):
        raise RequestRefused(RefusalReason.MALFORMED)
    return (int(match[1]), int(match[2]), int(match[3]))


def _make_json_response(body: bytes) -> web.Response:
    return web.Response(body=body, headers=_HEADERS, content_type="application/json")


@lru_cache(maxsize=16)
def _encode_report_response(heartbeat: float) -> bytes:
    return wire.encode(ReportAnswer(heartbeat))
