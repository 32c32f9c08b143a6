"""`muster doctor` against an API server with an installation, and with one thing wrong at a time."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.api_client import api_client
from fakes.api_server import make_failure
from muster.api.crd import PLURALS, build_crds
from muster.distribution import get_version
from support.muster_process import run_with_kubeconfig

SYSTEM = "/namespaces/muster-system"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/distributedtrainingjobs.muster.dev"
DEPLOYMENTS = f"/apis/apps/v1{SYSTEM}/deployments"
LEASES = f"/apis/coordination.k8s.io/v1{SYSTEM}/leases"
LEASE = f"{LEASES}/muster"
WEBHOOK = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/muster-muster-system"
SLICES = f"/apis/discovery.k8s.io/v1{SYSTEM}/endpointslices"
NODES = "/api/v1/nodes"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
JOBS = "/apis/muster.dev/v1alpha1/namespaces/team-a/distributedtrainingjobs"
DENIED = 'admission webhook "jobs.muster.dev" denied the request: spec.metrics[0].regex: found "("'

LABELS = {"app.kubernetes.io/name": "muster", "app.kubernetes.io/version": get_version()}


def make_node(name: str, instance_type: str, **allocatable: str) -> dict[str, Any]:
    labels = {"node.kubernetes.io/instance-type": instance_type}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}


def make_lease(renewed_at: str) -> dict[str, Any]:
    spec = {"holderIdentity": "muster-1", "renewTime": renewed_at, "leaseDurationSeconds": 13}
    return {"metadata": {"name": "muster", "resourceVersion": "5"}, "spec": spec}


@dataclass
class Installation:
    """The objects by path, and the API server's answers."""

    objects: dict[str, Any]
    denied_verbs: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    is_renewed: bool = True
    webhook_answers: bool = True
    created: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path in self.forbidden:
            return make_failure(403, "Forbidden", f"you cannot get {request.path}")
        if request.method == "POST":
            return self._create(request, await request.json())
        assert request.method == "GET"
        if "watch" in request.query:
            return await self._watch(request)
        if request.path not in self.objects:
            return make_failure(404, "NotFound", "not found")
        return web.json_response(self.objects[request.path])

    def _create(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        if request.path == REVIEWS:
            verb = body["spec"]["resourceAttributes"]["verb"]
            return web.json_response({**body, "status": {"allowed": verb not in self.denied_verbs}})
        assert (request.path, request.query["dryRun"]) == (JOBS, "All")
        self.created.append(body)
        return make_failure(403, "Forbidden", DENIED) if self.webhook_answers else web.json_response(body)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        assert request.path == LEASES
        response = web.StreamResponse()
        await response.prepare(request)
        if self.is_renewed:
            change = {"type": "MODIFIED", "object": make_lease("2026-11-26T03:00:02Z")}
            await response.write(json.dumps(change).encode() + b"\n")
        return response


def make_installation() -> Installation:
    deployment = {
        "metadata": {"name": "muster", "labels": LABELS},
        "spec": {"replicas": 2},
        "status": {"availableReplicas": 2},
    }
    webhook = {"name": "jobs.muster.dev", "clientConfig": {"caBundle": "QQ=="}}
    gpus = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "4"}
    lists = {
        DEPLOYMENTS: [deployment],
        SLICES: [{"endpoints": [{"addresses": ["10.0.0.1"]}]}],
        NODES: [make_node("gpu-1", "p4d.24xlarge", **gpus), make_node("cpu-1", "m5.large")],
    }
    return Installation(
        {
            **{
                f"{CRDS}/{plural}.muster.dev": json.loads(
                    json.dumps(crd).replace('"properties": {}, ', "").replace(', "properties": {}', "")
                )
                for plural, crd in zip(PLURALS, build_crds(), strict=True)
            },
            LEASE: make_lease("2026-11-26T03:00:00Z"),
            WEBHOOK: {"metadata": {"name": "muster-muster-system"}, "webhooks": [webhook]},
            **{path: {"kind": "List", "metadata": {}, "items": items} for path, items in lists.items()},
        }
    )


async def run(installation: Installation, folder: Path, *words: str) -> tuple[int | None, dict[str, list[str]], str]:
    """Return the exit code, the lines of each check, and standard error."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", installation.answer)
    async with api_client(app, folder):
        code, output, messages = await run_with_kubeconfig(folder / "kubeconfig", "doctor", "-n", "team-a", *words)
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith(" "):
            found[list(found)[-1]].append(line.strip())
        else:
            level, name_and_text = line.split(maxsplit=1)
            name, _, text = name_and_text.partition(": ")
            found[name] = [level, text]
    return code, found, messages


async def test_all_is_well(tmp_path: Path) -> None:
    installation = make_installation()
    before = deepcopy(installation.objects)
    code, found, messages = await run(installation, tmp_path)
    assert (code, messages) == (0, "")
    assert {name: lines[0] for name, lines in found.items()} == {
        "CRD": "ok",
        "operator": "ok",
        "namespace": "ok",
        "Lease": "ok",
        "webhook": "ok",
        "collector": "ok",
        "NetworkPolicy": "unknown",
        "GPUs": "ok",
        "EFA": "ok",
        "permissions": "ok",
    }
    assert found["GPUs"][1] == "2 nodes: 8 nvidia.com/gpu"
    assert found["EFA"][1] == "2 nodes: 4 vpc.amazonaws.com/efa"
    assert installation.objects == before
    assert [job["metadata"]["name"] for job in installation.created] == ["muster-doctor"]


def remove_crd(installation: Installation) -> None:
    del installation.objects[CRD]


def change_crd(installation: Installation) -> None:
    schema = installation.objects[CRD]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["spares"]


def remove_operator(installation: Installation) -> None:
    installation.objects[DEPLOYMENTS]["items"] = []


def stop_replicas(installation: Installation) -> None:
    installation.objects[DEPLOYMENTS]["items"][0]["status"] = {}


def install_another_version(installation: Installation) -> None:
    labels = installation.objects[DEPLOYMENTS]["items"][0]["metadata"]["labels"]
    installation.objects[DEPLOYMENTS]["items"][0]["metadata"]["labels"] = {**labels, "app.kubernetes.io/version": "9.0"}


def serve_others(installation: Installation) -> None:
    container = {"args": ["operator", "--namespace=team-b", "--namespace=team-c"]}
    spec = installation.objects[DEPLOYMENTS]["items"][0]["spec"]
    spec["template"] = {"spec": {"containers": [container]}}


def free_lease(installation: Installation) -> None:
    installation.objects[LEASE]["spec"]["holderIdentity"] = ""


def stop_renewing(installation: Installation) -> None:
    installation.is_renewed = False


def remove_authority(installation: Installation) -> None:
    del installation.objects[WEBHOOK]["webhooks"][0]["clientConfig"]["caBundle"]


def stop_webhook(installation: Installation) -> None:
    installation.webhook_answers = False


def remove_endpoints(installation: Installation) -> None:
    installation.objects[SLICES]["items"][0]["endpoints"] = []


def remove_plug_ins(installation: Installation) -> None:
    installation.objects[NODES]["items"][0]["status"]["allocatable"] = {}


def deny_creation(installation: Installation) -> None:
    installation.denied_verbs.add("create")


@pytest.mark.parametrize(
    ("change", "name", "text", "remedy"),
    [
        (remove_crd, "CRD", "is not installed", "`muster apply-crds`"),
        (change_crd, "CRD", f"is not the one of muster {get_version()}", "`muster apply-crds`"),
        (remove_operator, "operator", "no Deployment of muster in the namespace muster-system", "--operator-namespace"),
        (stop_replicas, "operator", "0 of 2 replicas of muster-system/muster are available", "`kubectl describe pods"),
        (install_another_version, "operator", "muster-system/muster is of version 9.0", "the same version"),
        (serve_others, "namespace", "not run the jobs of team-a, only those of team-b, team-c", "value namespaces"),
        (free_lease, "Lease", "nobody holds the Lease muster-system/muster", "`kubectl logs"),
        (stop_renewing, "Lease", "was not renewed for 13 s", "see its log"),
        (remove_authority, "webhook", "has no caBundle", "`kubectl logs"),
        (stop_webhook, "webhook", "the API server stores jobs without its answer", "security groups"),
        (remove_endpoints, "collector", "muster-system/muster-collector has no endpoints", "the leader writes them"),
        (remove_plug_ins, "GPUs", "1 node with GPUs or Neuron cores offer none: gpu-1", "device plug-in"),
        (remove_plug_ins, "EFA", "1 node with EFA offer none: gpu-1", "docs/efa.md"),
        (deny_creation, "permissions", "you may not create distributedtrainingjobs", "ClusterRole edit"),
    ],
)
async def test_what_is_wrong_and_what_to_do(
    change: Callable[[Installation], None], name: str, text: str, remedy: str, tmp_path: Path
) -> None:
    installation = make_installation()
    change(installation)
    code, found, messages = await run(installation, tmp_path)
    assert (code, messages) == (1, "")
    level, said, advice = found[name]
    assert level == "failed"
    assert text in said
    assert remedy in advice


async def test_only_the_named_checks_run(tmp_path: Path) -> None:
    installation = make_installation()
    remove_plug_ins(installation)
    code, found, _ = await run(installation, tmp_path, "--only=crd", "--only=Lease")
    assert (code, list(found)) == (0, ["CRD", "Lease"])
    code, _, messages = await run(installation, tmp_path, "--only=leases")
    assert code == 2
    assert "--only: found 'leases'; allowed are CRD, operator, namespace, Lease, webhook" in messages


async def test_a_collector_that_does_not_answer_is_found(tmp_path: Path, unused_tcp_port: int) -> None:
    url = f"https://127.0.0.1:{unused_tcp_port}"
    code, found, _ = await run(make_installation(), tmp_path, "--only=CRD", f"--collector-url={url}")
    level, said, advice = found[url]
    assert (code, level) == (1, "failed")
    assert "no answer (" in said
    assert "NetworkPolicies" in advice
    code, _, messages = await run(make_installation(), tmp_path, "--collector-url=muster-collector:8443")
    assert code == 2
    assert "--collector-url: found 'muster-collector:8443'; allowed is https://HOST:PORT" in messages


async def test_the_crd_of_a_newer_version_is_well(tmp_path: Path) -> None:
    installation = make_installation()
    change_crd(installation)
    installation.objects[CRD]["metadata"]["annotations"] = {"muster.dev/version": "99.0.0"}
    code, found, _ = await run(installation, tmp_path)
    level, said, *_ = found["CRD"]
    assert (code, level) == (0, "ok")
    assert "is of muster 99.0.0, which is newer than this command" in said


async def test_what_a_user_may_not_read_is_unknown(tmp_path: Path) -> None:
    installation = make_installation()
    installation.forbidden |= {CRD, DEPLOYMENTS, LEASE, WEBHOOK, SLICES, NODES}
    code, found, messages = await run(installation, tmp_path)
    # without the Deployments muster can't tell whether there is an operator
    assert (code, messages) == (0, "")
    assert found["CRD"] == [
        "unknown",
        f"the cluster denies the request: you cannot get {CRD}",
        "ask an administrator to run `muster doctor`",
    ]
    assert {lines[0] for name, lines in found.items() if name != "permissions"} == {"unknown"}


async def test_without_an_operator_only_one_check_fails(tmp_path: Path) -> None:
    installation = make_installation()
    remove_operator(installation)
    code, found, _ = await run(installation, tmp_path)
    assert code == 1
    assert [name for name, lines in found.items() if lines[0] == "failed"] == ["operator"]
    assert found["Lease"] == found["collector"] == ["unknown", "there is no operator in the namespace"]


async def test_without_a_webhook(tmp_path: Path) -> None:
    installation = make_installation()
    del installation.objects[WEBHOOK]
    code, found, _ = await run(installation, tmp_path)
    assert code == 0
    assert found["webhook"][0] == "unknown"
    assert "webhook.enabled" in found["webhook"][2]


async def test_without_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(
        json.dumps(
            {
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "x", "user": {}}],
            }
        ),
        encoding="utf-8",
    )
    code, output, messages = await run_with_kubeconfig(tmp_path / "kubeconfig", "doctor")
    assert (code, output) == (2, "")
    assert messages.startswith("muster: the cluster doesn't answer")
