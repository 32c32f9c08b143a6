"""`muster describe` against an API server with a failed job."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from fakes.api_client import api_client
from fakes.api_server import make_failure
from support.muster_process import run_with_kubeconfig

JOB = "/apis/muster.dev/v1alpha1/namespaces/team-a/distributedtrainingjobs/vit"
PODS = "/api/v1/namespaces/team-a/pods"
EVENTS = "/api/v1/namespaces/team-a/events"
LOG = f"{PODS}/vit-0-0/log"

OWNER = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "DistributedTrainingJob",
    "name": "vit",
    "uid": "u",
    "controller": True,
}
CONDITION = {
    "type": "Failed",
    "status": "True",
    "reason": "RankFailed",
    "message": "",
    "lastTransitionTime": "2026-11-21T05:09:00Z",
}
DETAIL = {
    "rank": 1,
    "node": 0,
    "pod": "vit-0-0",
    "state": "Failed",
    "exitCode": 3,
    "reason": "RankFailed",
    "message": "no",
}
FAILED_JOB = {
    "metadata": {"name": "vit", "namespace": "team-a", "uid": "u", "creationTimestamp": "2026-11-21T05:00:00Z"},
    "spec": {},
    "status": {
        "phase": "Failed",
        "message": "Rank 1 on vit-0 exited with 3",
        "conditions": [CONDITION],
        "nodes": {"desired": 1, "ready": 0},
        "ranks": {"world": 2, "running": 0, "ready": "0/2", "details": [DETAIL]},
    },
}
POD = {
    "metadata": {"name": "vit-0-0", "uid": "p", "ownerReferences": [OWNER]},
    "spec": {"nodeName": "ip-7"},
    "status": {"phase": "Failed"},
}
EVENT = {"type": "Warning", "reason": "BackOff", "message": "no image", "lastTimestamp": "2026-11-21T05:01:00Z"}


@dataclass
class Cluster:
    """Answers requests for the job, its pod, its events and its log. Paths in `forbidden` are denied."""

    forbidden: set[str] = field(default_factory=set)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path in self.forbidden:
            return make_failure(403, "Forbidden", f"you cannot list {request.path.rpartition('/')[2]}")
        if request.path == LOG:
            assert request.query["container"] == "trainer"
            return web.Response(text="[rank 0] fine\n[rank 1] before\n[rank 1] ValueError: no\n[torchrun] ended\n")
        answers: dict[str, Any] = {JOB: FAILED_JOB, PODS: {"items": [POD]}, EVENTS: self._find_events(request)}
        if request.path not in answers:
            message = 'distributedtrainingjobs.muster.dev "bert" not found'
            return make_failure(404, "NotFound", message)
        return web.json_response(answers[request.path])

    def _find_events(self, request: web.Request) -> dict[str, Any]:
        selector = request.query.get("fieldSelector", "")
        if selector == "involvedObject.uid=u":
            return {
                "items": [{**EVENT, "type": "Normal", "message": "about the job", "involvedObject": {"name": "vit"}}]
            }
        if selector == "involvedObject.kind=Pod,type=Warning":
            names = ("vit-0-0", "bert-0-0")
            return {"items": [{**EVENT, "involvedObject": {"name": name}} for name in names]}
        return {"items": []}


async def describe(cluster: Cluster, folder: Path, name: str = "vit") -> tuple[int, str, str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", cluster.answer)
    async with api_client(app, folder):
        return await run_with_kubeconfig(folder / "kubeconfig", "describe", name, "-n", "team-a")


async def test_a_failed_job(tmp_path: Path) -> None:
    code, output, messages = await describe(Cluster(), tmp_path)
    assert (code, messages) == (0, "")
    assert output.startswith("vit  team-a  Kubernetes  Failed\nRank 1 on vit-0 exited with 3\n")
    lines = [line.strip() for line in output.splitlines()]
    failure = lines.index("rank 1 on vit-0-0: RankFailed, exit code 3: no")
    assert lines[failure + 1 : failure + 3] == ["| before", "| ValueError: no"]
    assert any(line.startswith("0     0-1    vit-0-0  Failed  ip-7") for line in lines)
    assert sum("no image" in line for line in lines) == 1
    assert any("about the job" in line for line in lines)
    assert "bert" not in output


async def test_what_the_user_may_not_read_is_named(tmp_path: Path) -> None:
    code, output, _ = await describe(Cluster(forbidden={PODS, EVENTS}), tmp_path)
    assert code == 0
    assert "the pods can't be read: the cluster denies the request: you cannot list pods" in output
    assert "the events can't be read: the cluster denies the request: you cannot list events" in output
    assert "rank 1 on vit-0-0: RankFailed, exit code 3: no" in output


async def test_a_log_that_can_t_be_read(tmp_path: Path) -> None:
    _, output, _ = await describe(Cluster(forbidden={LOG}), tmp_path)
    assert "| no log: the cluster denies the request: you cannot list log" in output


async def test_there_is_no_such_job(tmp_path: Path) -> None:
    code, output, messages = await describe(Cluster(), tmp_path, "bert")
    assert (code, output) == (2, "")
    assert messages.startswith("muster: there is no DistributedTrainingJob bert in the namespace team-a")
