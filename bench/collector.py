"""How many reports a second one core takes, beside what aiohttp takes that answers the same bytes and does nothing.

Prints one JSON line. The server runs in this process, its clients in others; what is measured is the server's own CPU
time for each request, so that it doesn't matter how fast the clients are. Both servers are measured in one run, in
turns, because machines differ more than they do: `ratio` is what to compare.
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
from muster.collector.directory import Member
from muster.collector.store import RankStore
from muster.collector.trust.certificate import ServingCertificate, issue, server_context
from muster.collector.trust.keys import read_keys
from muster.collector.trust.tokens import LocalIssuer, PodClaim, Verifier
from muster.core.reports.check import Shape
from muster_worker.contract import wire
from muster_worker.contract.schema import TOKEN_AUDIENCE, AgentPhase, RankReport, RankState, Report, ReportAnswer

ISSUER = "https://bench.muster"
JOB = "0b5c7f0e-bench"
HOST = "127.0.0.1"
ANSWER = wire.encode(ReportAnswer(1.0))


class Pods:
    """One pod a node, known by its number."""

    def find(self, pod_uid: str) -> Member | None:
        return Member(JOB, int(pod_uid), 0)


def report(node: int, procs: int, sequence: int) -> bytes:
    """A heartbeat of a node whose ranks all run."""
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
    """A client: all bodies over one connection, one after the other."""
    connection = HTTPSConnection(HOST, int(url.rsplit(":", 1)[1]), context=ssl.create_default_context(cadata=authority))
    for body, token in bodies:
        connection.request(
            "POST", "/v1/report", body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        result = answer.read()
        if answer.status != 200 or result != ANSWER:  # noqa: PLR2004 - HTTP's OK
            raise SystemExit(f"{answer.status}: {result!r}")
    connection.close()


async def plain(request: web.BaseRequest) -> web.StreamResponse:
    """What the collector can't be cheaper than: reads the body, answers the same bytes."""
    await request.read()
    return web.Response(body=ANSWER, content_type="application/json")


async def measure(url: str, certificate: ServingCertificate, work: Sequence[Sequence[tuple[bytes, str]]]) -> float:
    """Requests a second of CPU time that this process, the server, spent on `work`; one client for each part of it."""
    spawn = multiprocessing.get_context("spawn")
    loop = asyncio.get_running_loop()
    clients = [spawn.Process(target=send, args=(url, certificate.authority, part)) for part in work]
    for client in clients:
        client.start()
    began = time.process_time()
    await asyncio.gather(*(loop.run_in_executor(None, client.join) for client in clients))
    spent = time.process_time() - began
    if any(client.exitcode for client in clients):
        raise SystemExit("a client failed")
    return sum(len(part) for part in work) / spent


async def bench(requests: int, procs: int, rounds: int) -> dict[str, float | int | str]:
    """All rounds, each with both servers."""
    now = time.time()
    certificate = issue([HOST], now, 3600.0)
    issuer = LocalIssuer(ISSUER, TOKEN_AUDIENCE)
    # every request is another pod's heartbeat: as many pods, none above its rate
    nodes = requests
    tokens = [issuer.issue(PodClaim("default", f"bench-{node}", str(node)), now, 3600.0) for node in range(nodes)]
    verifier = Verifier(ISSUER, TOKEN_AUDIENCE, read_keys(issuer.jwks()))
    for token in tokens:
        verifier.verify(token, now)
    store = RankStore()
    # the pace that is answered follows the number of agents; a job this small gets the same bytes as the plain server
    store.register(Shape(JOB, nodes, procs, now - 60.0))
    collector = Collector(store=store, verifier=verifier, directory=Pods(), certificate=certificate, clock=time.time)
    url = await collector.start(HOST)
    collector.lead(lambda: True)

    runner = web.ServerRunner(web.Server(plain, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0, ssl_context=server_context(certificate))
    await site.start()
    plain_url = f"https://{HOST}:{site.port}"

    collected, answered = [], []
    for turn in range(rounds):
        bodies = [(report(node, procs, turn + 1), tokens[node]) for node in range(nodes)]
        work = [bodies[0::2], bodies[1::2]]
        answered.append(await measure(plain_url, certificate, work))
        collected.append(await measure(url, certificate, work))
    await collector.close()
    await runner.cleanup()
    return {
        "bench": "collector",
        "ranks_per_report": procs,
        "requests": requests * rounds,
        "reports_per_cpu_second": round(statistics.median(collected)),
        "plain_per_cpu_second": round(statistics.median(answered)),
        "ratio": round(statistics.median(ours / theirs for ours, theirs in zip(collected, answered, strict=True)), 3),
        "refused": sum(collector.refused.values()),
    }


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=250, help="reports a round, at most 250: see pace.py")
    parser.add_argument("--ranks", type=int, default=8, help="ranks a report")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(bench(options.requests, options.ranks, options.rounds))))


if __name__ == "__main__":
    main()
