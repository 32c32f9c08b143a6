"""Measures how many reports per second of CPU time the collector handles, compared with a minimal aiohttp server.

Prints one JSON line. The server runs in this process and its clients in others. The result is the server's CPU time per
request, so the clients' speed doesn't matter. Each run measures both servers in turns, because machines differ more
than the servers do. Compare `ratio`.
"""

import argparse
import asyncio
import json
import multiprocessing
import ssl
import statistics
import time
from collections.abc import Sequence
from http.client import HTTPSConnection

from aiohttp import web

from muster.collector.collector import Collector
from muster.collector.pod_directory import PodIdentity
from muster.collector.store import RankStore
from muster.collector.trust.certificate import ServingCertificate, issue_certificate, make_server_context
from muster.collector.trust.keys import read_keys
from muster.collector.trust.tokens import LocalTokenIssuer, PodClaim, TokenVerifier
from muster.core.reports.check import JobShape
from muster_worker.contract import wire
from muster_worker.contract.schema import TOKEN_AUDIENCE, AgentPhase, RankReport, RankState, Report, ReportAnswer

ISSUER = "https://bench.muster"
JOB = "0b5c7f0e-bench"
HOST = "127.0.0.1"
ANSWER = wire.encode(ReportAnswer(1.0))


class Pods:
    """One pod per node, with the node's number as its UID."""

    def find(self, pod_uid: str) -> PodIdentity | None:
        return PodIdentity(JOB, int(pod_uid), 0)


def make_report(node: int, procs: int, sequence: int) -> bytes:
    """Return a heartbeat of a node with running ranks."""
    ranks = tuple(
        RankReport(
            rank=node * procs + local,
            local_rank=local,
            state=RankState.RUNNING,
            pid=4000 + local,
            started_age=10.0 + sequence,
            step=sequence,
            step_age=0.25,
            rss_bytes=2**31,
        )
        for local in range(procs)
    )
    return wire.encode(
        Report(JOB, node, 0, 1, sequence, AgentPhase.RUNNING, "10.0.0.1", 29500, interface="eth0", ranks=ranks)
    )


def send(url: str, authority: str, bodies: Sequence[tuple[bytes, str]]) -> None:
    """Send all bodies one after the other over one connection, as a client."""
    connection = HTTPSConnection(HOST, int(url.rsplit(":", 1)[1]), context=ssl.create_default_context(cadata=authority))
    for body, token in bodies:
        connection.request(
            "POST", "/v1/report", body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        result = answer.read()
        if answer.status != 200 or result != ANSWER:  # noqa: PLR2004 - 200 OK
            raise SystemExit(f"{answer.status}: {result!r}")
    connection.close()


async def serve_minimal_answer(request: web.BaseRequest) -> web.StreamResponse:
    """Read the body and return the same bytes as the collector. This is the minimal server."""
    await request.read()
    return web.Response(body=ANSWER, content_type="application/json")


async def measure(url: str, certificate: ServingCertificate, work: Sequence[Sequence[tuple[bytes, str]]]) -> float:
    """Return the requests per second of this process' CPU time for `work`, with a client for each part of it."""
    spawn = multiprocessing.get_context("spawn")
    loop = asyncio.get_running_loop()
    clients = [spawn.Process(target=send, args=(url, certificate.authority, part)) for part in work]
    for client in clients:
        client.start()
    started = time.process_time()
    await asyncio.gather(*(loop.run_in_executor(None, client.join) for client in clients))
    cpu_seconds = time.process_time() - started
    if any(client.exitcode for client in clients):
        raise SystemExit("a client failed")
    return sum(len(part) for part in work) / cpu_seconds


async def measure_collectors(requests: int, procs: int, rounds: int) -> dict[str, float | int | str]:
    """Run all rounds, each with both servers."""
    now = time.time()
    certificate = issue_certificate([HOST], now, 3600.0)
    issuer = LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE)
    # Each request is from another pod, so that no pod exceeds its rate limit.
    nodes = requests
    tokens = [issuer.issue(PodClaim("default", f"bench-{node}", str(node)), now, 3600.0) for node in range(nodes)]
    verifier = TokenVerifier(ISSUER, TOKEN_AUDIENCE, read_keys(issuer.make_jwks()))
    for token in tokens:
        verifier.verify(token, now)
    store = RankStore()
    # The answer's heartbeat interval depends on the number of agents. With this job both servers send the same one.
    store.register_job(JobShape(JOB, nodes, procs, now - 60.0))
    collector = Collector(store=store, verifier=verifier, directory=Pods(), certificate=certificate, clock=time.time)
    url = await collector.start(HOST)
    collector.start_leading(lambda: True)

    runner = web.ServerRunner(web.Server(serve_minimal_answer, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0, ssl_context=make_server_context(certificate))
    await site.start()
    minimal_url = f"https://{HOST}:{site.port}"

    collector_rates, plain_rates = [], []
    for turn in range(rounds):
        bodies = [(make_report(node, procs, turn + 1), tokens[node]) for node in range(nodes)]
        work = [bodies[0::2], bodies[1::2]]
        plain_rates.append(await measure(minimal_url, certificate, work))
        collector_rates.append(await measure(url, certificate, work))
    await collector.close()
    await runner.cleanup()
    return {
        "bench": "collector",
        "ranks_per_report": procs,
        "requests": requests * rounds,
        "reports_per_cpu_second": round(statistics.median(collector_rates)),
        "plain_per_cpu_second": round(statistics.median(plain_rates)),
        "ratio": round(
            statistics.median(
                collector_rate / plain_rate
                for collector_rate, plain_rate in zip(collector_rates, plain_rates, strict=True)
            ),
            3,
        ),
        "refused": sum(collector.refusal_counts.values()),
    }


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=250, help="reports in a round, at most 250")
    parser.add_argument("--ranks", type=int, default=8, help="ranks in a report")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measure_collectors(options.requests, options.ranks, options.rounds))))


if __name__ == "__main__":
    main()
