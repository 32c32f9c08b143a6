"""A program inside a pod that requests other jobs' data from the collector."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster.operator.site import Site
from muster_worker.contract import wire
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report

OWN = "own"
"""The token of the pod."""

SCRIPT = Path(__file__).with_name("intruder_workload.py").read_text(encoding="utf-8")
WORDS = "forged by an intruder"


@dataclass(frozen=True)
class Ask:
    """A request; `token` None: without a token."""

    token: str | None = OWN
    body: str | None = None
    method: str = "POST"
    path: str = "/v1/report"


@dataclass(frozen=True)
class Place:
    """A job's node, and its current pod."""

    job_uid: str
    node: int = 0
    replacement: int = 0


def failure_of(place: Place) -> str:
    """Return a report that the node's rank has failed. The job has one rank per node."""
    ended = RankReport(
        rank=place.node,
        local_rank=0,
        state=RankState.EXITED,
        exit_code=13,
        started_age=1.0,
        ended_age=0.5,
        last_lines=(WORDS,),
    )
    return _report(place, ended)


def progress_of(place: Place) -> str:
    """Return a report that the node's rank runs."""
    return _report(place, RankReport(place.node, 0, RankState.RUNNING, started_age=1.0, step=1, step_age=0.0))


def _report(place: Place, rank: RankReport) -> str:
    # newer than any report of the node's own agent
    report = Report(place.job_uid, place.node, place.replacement, 1, 10**9, AgentPhase.RUNNING, ranks=(rank,))
    return wire.encode(report).decode()


@dataclass(frozen=True)
class Target:
    """A server, and its certificate authorities (PEM)."""

    url: str
    authority: str


def collector(site: Site, job: str) -> Target:
    """Return the collector of a job's plan: the same for each job."""
    settings = json.loads(site.jobs.run("get", "configmap", f"{job}-muster", "--output=json"))
    plan = json.loads(settings["data"]["plan.json"])
    return Target(plan["collector_url"], plan["collector_ca"])


def api_server(site: Site) -> Target:
    """Return the API server, as every pod finds it."""
    settings = json.loads(site.jobs.run("get", "configmap", "kube-root-ca.crt", "--output=json"))
    return Target("https://kubernetes.default.svc", settings["data"]["ca.crt"])


def ask(site: Site, pod: str, target: Target, requests: Sequence[Ask]) -> list[tuple[int, str]]:
    """Send requests from a pod's container `trainer`; return each answer: status and body."""
    wanted = {**asdict(target), "requests": [asdict(request) for request in requests]}
    command = ("exec", "-i", pod, "--container=trainer", "--", "python3", "-Ic", SCRIPT)
    said = site.jobs.run(*command, stdin=json.dumps(wanted))
    return [(status, body) for status, body in json.loads(said)]
