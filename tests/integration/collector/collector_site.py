"""A collector on a real port, with pods that have real tokens, for the tests."""

import asyncio
import contextlib
import io
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp

from muster.collector.collector import Collector
from muster.collector.pod_directory import PodIdentity
from muster.collector.server.connection_limits import ConnectionLimits
from muster.collector.store import RankStore
from muster.collector.trust.certificate import ServingCertificate, issue_certificate
from muster.collector.trust.keys import read_keys
from muster.collector.trust.tokens import LocalTokenIssuer, PodClaim, TokenVerifier
from muster.core.reports.check import JobShape
from muster_worker.contract import wire
from muster_worker.contract.schema import TOKEN_AUDIENCE, AgentPhase, RankReport, RankState, Report
from support.clock import Clock

ISSUER = "https://muster.test"
JOB = "5f7f0c1e-job"
NODES = 4
PROCS = 8


class Pods(dict[str, PodIdentity]):
    """The directory: pod uid -> place."""

    def find(self, pod_uid: str) -> PodIdentity | None:
        return self.get(pod_uid)


@dataclass
class Site:
    """The collector and its environment."""

    url: str
    collector: Collector
    store: RankStore
    pods: Pods
    clock: Clock
    issuer: LocalTokenIssuer
    certificate: ServingCertificate
    client: aiohttp.ClientSession
    host: str = "127.0.0.1"
    sequence: int = field(default=0)

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def tls(self) -> ssl.SSLContext:
        return trusting(self.certificate)

    def token(self, node: int, lifetime: float = 3600.0) -> str:
        return self.issuer.issue(claim(node), self.clock.now, lifetime)

    def report(self, node: int = 0, **changes: object) -> bytes:
        self.sequence += 1
        return wire.encode(report(node, self.sequence, **changes))

    async def post(
        self,
        body: bytes | io.BytesIO | AsyncIterator[bytes],
        token: str | None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        async with self.client.post(f"{self.url}/v1/report", data=body, headers=sent) as answer:
            return answer.status, answer.headers, await answer.read()

    async def until_polled(self, node: int) -> None:
        await until(lambda: bool((entry := self.store._jobs[JOB].nodes.get(node)) and entry.waiters))

    async def poll(self, node: int, query: str) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self.token(node)}"}
        async with self.client.get(f"{self.url}/v1/command?{query}", headers=headers) as answer:
            return answer.status, await answer.read()


async def until(is_so: Callable[[], bool]) -> None:
    """Run the loop until a condition inside the collector is true, for which there is no event."""
    async with asyncio.timeout(60.0):
        while not is_so():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.001)


def claim(node: int) -> PodClaim:
    return PodClaim("default", f"digits-{node}", pod_uid(node))


def pod_uid(node: int) -> str:
    return f"pod-{node}"


def report(node: int, sequence: int, **changes: object) -> Report:
    ranks = tuple(
        RankReport(
            node * PROCS + local, local, RankState.RUNNING, pid=100 + local, started_age=1.0, step=3, step_age=0.1
        )
        for local in range(PROCS)
    )
    fields: dict[str, object] = {"phase": AgentPhase.RUNNING, "address": "10.0.0.7", "port": 29500, "ranks": ranks}
    fields.update(changes)
    base = Report(JOB, node, 0, 1, sequence, AgentPhase.RUNNING)
    return Report(**{**vars(base), **fields})


def trusting(certificate: ServingCertificate) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=certificate.authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


@contextlib.asynccontextmanager
async def collector_site(
    limits: ConnectionLimits | None = None, pods: Mapping[int, PodIdentity] | None = None, *, leads: bool = True
) -> AsyncIterator[Site]:
    clock = Clock()
    issuer = LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE)
    certificate = issue_certificate(["127.0.0.1", "localhost"], clock.now, 3600.0)
    store = RankStore()
    store.register_job(JobShape(JOB, NODES, PROCS, clock.now - 60.0))
    by_key = {node: PodIdentity(JOB, node, 0) for node in range(NODES)} if pods is None else pods
    directory = Pods({pod_uid(node): member for node, member in by_key.items()})
    verifier = TokenVerifier(ISSUER, TOKEN_AUDIENCE, read_keys(issuer.make_jwks()))
    collector = Collector(
        store=store, verifier=verifier, directory=directory, certificate=certificate, clock=clock, limits=limits
    )
    url = await collector.start("127.0.0.1")
    if leads:
        collector.start_leading(lambda: True)
    connector = aiohttp.TCPConnector(ssl=trusting(certificate))
    try:
        async with aiohttp.ClientSession(connector=connector) as client:
            yield Site(url, collector, store, directory, clock, issuer, certificate, client)
    finally:
        await collector.close()
