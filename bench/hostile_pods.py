"""Measures how hostile pods affect a collector, and an honest agent that reports at the same time.

Prints one JSON line: the delay of the collector's event loop, the latency of the honest agent's reports, and the
collector's memory and CPU use. The collector, the honest agent and the hostile pods are separate processes. Each pod
has its own loopback address and a valid token. Hostile pods run at nice 10, so that their own CPU use does not count.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import ssl
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.collector.collector import Collector
from muster.collector.pod_directory import PodIdentity
from muster.collector.store import RankStore
from muster.collector.trust.certificate import issue_certificate
from muster.collector.trust.keys import read_keys
from muster.collector.trust.tokens import LocalTokenIssuer, PodClaim, TokenVerifier
from muster.core.reports.check import JobShape
from muster_worker.agent.collector_client import CollectorClient, CollectorUnavailable, TrustedAuthorities
from muster_worker.contract import wire
from muster_worker.contract.schema import TOKEN_AUDIENCE, AgentPhase, RankReport, RankState, Report

ISSUER = "https://bench.muster"
HOST = "127.0.0.1"
HONEST = "honest"
RANKS = 128
LAG_SECONDS = 0.02
HONEST_SECONDS = 0.2
CONNECTIONS = 200
"""Number of connections of each kind that a hostile pod tries to keep open."""

PROCESSES = 3
"""Number of processes for the hostile pods. With more, the result would depend on this machine's scheduler."""


@dataclass(frozen=True)
class Site:
    """The collector's URL and certificate authority, and the pods' tokens by name."""

    url: str
    authority: str
    tokens: dict[str, str]

    @property
    def port(self) -> int:
        """The collector's port."""
        return int(self.url.rsplit(":", 1)[1])


def make_job_uid(pod: str) -> str:
    """Return the UID of a pod's job. Each pod has its own job and namespace."""
    return f"job-of-{pod}"


def make_report(pod: str, ranks: int, lines: Sequence[str], sequence: int) -> bytes:
    """Return a heartbeat. With lines of the maximum length it is the largest report that a pod may send."""
    reports = tuple(
        RankReport(local, local, RankState.RUNNING, pid=4000, started_age=1.0, step=sequence, last_lines=tuple(lines))
        for local in range(ranks)
    )
    return wire.encode(
        Report(make_job_uid(pod), 0, 0, 1, sequence, AgentPhase.RUNNING, "10.0.0.1", 29500, ranks=reports)
    )


class Pods:
    """The pod directory."""

    def find(self, pod_uid: str) -> PodIdentity | None:
        """Return a member for any pod."""
        return PodIdentity(make_job_uid(pod_uid), 0, 0)


def read_memory_mib() -> float:
    """Return this process' resident memory in MiB."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE") / 2**20


async def serve(pipe: multiprocessing.connection.Connection, pods: Sequence[str]) -> None:
    """Run the collector until the parent requests its figures."""
    now = time.time()
    certificate = issue_certificate([HOST], now, 3600.0)
    issuer = LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE)
    verifier = TokenVerifier(ISSUER, TOKEN_AUDIENCE, read_keys(issuer.make_jwks()))
    store = RankStore()
    for pod in pods:
        store.register_job(JobShape(make_job_uid(pod), 1, RANKS, now - 60.0))
    collector = Collector(store=store, verifier=verifier, directory=Pods(), certificate=certificate, clock=time.time)
    url = await collector.start(HOST)
    collector.start_leading(lambda: True)
    tokens = {pod: issuer.issue(PodClaim(f"team-{pod}", pod, pod), now, 3600.0) for pod in pods}
    pipe.send(Site(url, certificate.authority, tokens))

    loop, initial_memory, cpu = asyncio.get_running_loop(), read_memory_mib(), time.process_time()
    request = loop.run_in_executor(None, pipe.recv)
    lags, peak, connections = [], initial_memory, 0
    started = time.monotonic()
    while not request.done():
        expected_at = time.monotonic() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        lags.append(time.monotonic() - expected_at)
        peak = max(peak, read_memory_mib())
        connections = max(connections, collector.open_connections)
    lags.sort()
    pipe.send(
        {
            "loop_lag_p99_ms": round(lags[int(len(lags) * 0.99)] * 1e3, 1),
            "loop_lag_max_ms": round(lags[-1] * 1e3, 1),
            "memory_growth_mib": round(peak - initial_memory, 1),
            "cpu": round((time.process_time() - cpu) / (time.monotonic() - started), 2),
            "connections": connections,
            "refused": {str(reason): number for reason, number in collector.refusal_counts.most_common()},
        }
    )
    await collector.close()


def run_collector(pipe: multiprocessing.connection.Connection, pods: Sequence[str]) -> None:
    """Run the collector's process."""
    asyncio.run(serve(pipe, pods))


def run_honest(pipe: multiprocessing.connection.Connection, site: Site, seconds: float) -> None:
    """Run an agent that sends five reports per second on an open connection, and five on new connections."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as token:
        token.write(site.tokens[HONEST])
        token.flush()
        open_client = CollectorClient(site.url, TrustedAuthorities(site.authority, lambda: None), token.name)
        latencies_by_name: dict[str, list[float]] = {"kept": [], "new": []}
        failures = []
        deadline = time.monotonic() + seconds
        for sequence in itertools.count(1):
            if time.monotonic() > deadline:
                break
            # The previous client closes its connection when it is garbage-collected.
            new_client = CollectorClient(site.url, TrustedAuthorities(site.authority, lambda: None), token.name)
            for name, client in (("kept", open_client), ("new", new_client)):
                started = time.monotonic()
                try:
                    client.send_report(make_report(HONEST, 8, (), 2 * sequence + (name == "new")))
                except CollectorUnavailable as error:
                    failures.append(f"{name}: {error}")
                latencies_by_name[name].append(time.monotonic() - started)
            time.sleep(HONEST_SECONDS)
    pipe.send(
        {
            **{
                f"honest_{name}_median_ms": round(statistics.median(latencies) * 1e3, 1)
                for name, latencies in latencies_by_name.items()
            },
            **{
                f"honest_{name}_max_ms": round(max(latencies) * 1e3, 1) for name, latencies in latencies_by_name.items()
            },
            "honest_reports": sum(map(len, latencies_by_name.values())),
            "honest_failures": failures[:5],
        }
    )


@dataclass
class HostilePod:
    """A pod with a valid token and its own address that attacks the collector."""

    site: Site
    name: str
    address: str

    def __post_init__(self) -> None:
        self._context = ssl.create_default_context(cadata=self.site.authority)
        self._large_report = make_report(self.name, RANKS, ["\u00fc" * 100] * 8, 1)

    async def run(self, attacks: Sequence[str]) -> None:
        """Run these attacks concurrently until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name in attacks:
                attack, times = self._list_attacks()[name]
                for _ in range(times):
                    tasks.create_task(self._repeat(attack))

    def _list_attacks(self) -> dict[str, tuple[Callable[[], Awaitable[None]], int]]:
        """Return the attacks, each with its number of concurrent tasks."""
        return {
            "large": (self._post_large, 4),
            "lists": (self._post_lists, 4),
            "halves": (self._send_half_a_body, 4),
            "chunks": (self._send_chunks, 4),
            "polls": (self._poll_commands, 4),
            "idle": (self._connect_and_wait, CONNECTIONS),
            "slow": (self._complete_handshake_and_wait, CONNECTIONS),
        }

    async def _repeat(self, attack: Callable[[], Awaitable[None]]) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                await attack()
            await asyncio.sleep(0.2 + 0.2 * random.random())  # noqa: S311 - jitter

    async def _open(self, context: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HOST, self.site.port, ssl=context, local_addr=(self.address, 0))

    @contextlib.asynccontextmanager
    async def _open_tls(self):  # type: ignore[no-untyped-def] # noqa: ANN202
        reader, writer = await self._open(self._context)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    def _make_request_head(self, method: str, path: str, *lines: str) -> bytes:
        head = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.site.tokens[self.name]}", *lines)
        return "\r\n".join((*head, "", "")).encode()

    async def _post(self, body: bytes) -> None:
        async with self._open_tls() as (reader, writer):
            for _ in range(50):
                writer.write(self._make_request_head("POST", "/v1/report", f"Content-Length: {len(body)}") + body)
                await writer.drain()
                await reader.readuntil(b"\r\n\r\n")

    async def _post_large(self) -> None:
        await self._post(self._large_report)

    async def _post_lists(self) -> None:
        await self._post(b'{"ranks":[' + b"[]," * 340_000 + b"[]]}")

    async def _send_half_a_body(self) -> None:
        async with self._open_tls() as (reader, writer):
            writer.write(self._make_request_head("POST", "/v1/report", "Content-Length: 1000000") + b" " * 500_000)
            await reader.read()

    async def _send_chunks(self) -> None:
        async with self._open_tls() as (reader, writer):
            writer.write(
                self._make_request_head("POST", "/v1/report", "Transfer-Encoding: chunked") + b"1\r\n \r\n" * 100_000
            )
            await reader.read()

    async def _poll_commands(self) -> None:
        async with self._open_tls() as (reader, writer):
            for _ in range(50):
                writer.write(self._make_request_head("GET", "/v1/command?wait=0") * 10)
                await reader.readuntil(b"\r\n\r\n")

    async def _connect_and_wait(self) -> None:
        reader, writer = await self._open(None)
        try:
            await reader.read()
        finally:
            writer.transport.abort()

    async def _complete_handshake_and_wait(self) -> None:
        async with self._open_tls() as (reader, writer):
            writer.write(b"GET /v1/command HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            await reader.read()


ATTACKS = ("large", "lists", "halves", "chunks", "polls", "idle", "slow")


def run_hostile(site: Site, pods: Sequence[tuple[str, str]], attacks: Sequence[str]) -> None:
    """Run some of the hostile pods until this process is killed."""
    os.nice(10)

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, address in pods:
                tasks.create_task(HostilePod(site, name, address).run(attacks))

    asyncio.run(run())


def run_attacks(pods: int, seconds: float, attacks: Sequence[str]) -> dict[str, object]:
    """Run `pods` hostile pods for `seconds` and return the figures."""
    context = multiprocessing.get_context("fork")
    names = [f"hostile-{number}" for number in range(pods)]
    parent_end, child_end = context.Pipe()
    collector = context.Process(target=run_collector, args=(child_end, [HONEST, *names]))
    collector.start()
    site = parent_end.recv()
    named_addresses = [(name, f"127.0.1.{number + 1}") for number, name in enumerate(names)]
    process_indexes = range(PROCESSES)
    hostile_processes = [
        context.Process(target=run_hostile, args=(site, named_addresses[process_index::PROCESSES], attacks))
        for process_index in process_indexes
    ]
    result_reader, result_writer = context.Pipe(duplex=False)
    honest_process = context.Process(target=run_honest, args=(result_writer, site, seconds))
    try:
        for process in (*hostile_processes, honest_process):
            process.start()
        result = result_reader.recv()
        parent_end.send("send the figures")
        return {
            "bench": "hostile_pods",
            "pods": pods,
            "attacks": list(attacks),
            "seconds": seconds,
            **parent_end.recv(),
            **result,
        }
    finally:
        for process in (*hostile_processes, honest_process, collector):
            if process.pid is not None:
                process.kill()
                process.join()


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=30, help="hostile pods")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, default=ATTACKS)
    options = parser.parse_args()
    print(json.dumps(run_attacks(options.pods, options.seconds, options.attacks)))


if __name__ == "__main__":
    main()
