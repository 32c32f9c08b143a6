"""Resources on a real API server: its refusals equal the table of the unit tests, and it reads values as muster
does.
"""

import copy
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cluster.shared import Cluster, Kubectl
from muster.api.changes import ENDED_MESSAGE, IMMUTABLE_MESSAGE
from muster.api.crd import build_crd, format_crd_yaml
from muster.api.document import JSON, Document
from muster.api.validation.validate import validate
from muster.api.yaml.load import NotReadable, load_documents
from muster.api.yaml.serialise import serialise_spec, to_yaml
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS, Kind, Object
from unit.api.api_resources import BadResource, bad_resources, fields, full_resource, part, problems, resource, spec
from unit.render.sagemaker.builders import sagemaker_spec

TWIN = Kind("twin.test", JOBS.version, JOBS.plural, JOBS.name)
"""The resource in another group, which no operator of the cluster watches."""

ROWS = bad_resources()
NAMES = [f"{row.at} {row.says}"[:60] for row in ROWS]
SCALAR_CASES = Path(__file__).parents[1] / "unit" / "api" / "kubectl_scalars.json"
EXAMPLES = sorted((Path(__file__).parents[2] / "training" / "examples").glob("*/job.yaml"))
SAGEMAKER_JOBS = Path(__file__).parents[1] / "unit" / "render" / "sagemaker" / "jobs"
IMPORTED_JOBS = sorted((Path(__file__).parents[1] / "unit" / "importers" / "kubernetes" / "jobs").glob("*.yaml"))


@pytest.fixture(scope="module")
def known(cluster: Cluster) -> Kubectl:
    """kubectl on a cluster with muster's current CRD."""
    cluster.up()
    kubectl = Kubectl(cluster.kubeconfig)
    kubectl.define(format_crd_yaml())
    return kubectl


@pytest.fixture
async def client(known: Kubectl) -> AsyncIterator[Client]:
    connected = await Client.connect(str(known.kubeconfig))
    yield connected
    await connected.close()


async def refusal(client: Client, body: Object) -> str:
    """Return the API server's refusal of a resource; empty if it accepts it."""
    try:
        await client.dry_run_create(JOBS, "default", body)
    except ApiError as error:
        if not error.is_refusal:
            raise
        return error.message
    return ""


# --- accepted and refused resources


def messages(schema: JSON) -> set[str]:
    """Return the messages of the CRD's rules."""
    if isinstance(schema, list):
        return {text for item in schema for text in messages(item)}
    if not isinstance(schema, dict):
        return set()
    own = {str(schema["message"])} if "rule" in schema else set()
    return own.union(*(messages(below) for below in schema.values()))


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
async def test_the_api_server_refuses_what_the_table_says(client: Client, row: BadResource) -> None:
    said = await refusal(client, row.value)
    assert bool(said) == (row.by != "muster"), said
    if row.by == "cel":
        ((_, message),) = problems(row.value)
        # one rule's message may be the end of another's
        sentence = max((text for text in messages(build_crd()) if message.endswith(text)), key=len)
        assert sentence in said


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.parent.name))
def test_the_examples_are_taken(known: Kubectl, file: Path) -> None:
    known("apply", "--dry-run=server", "-f", str(file))


def test_the_jobs_of_launch_scripts_are_taken(known: Kubectl) -> None:
    taken = known("apply", "--dry-run=server", "-f", str(SAGEMAKER_JOBS)).splitlines()
    assert len(taken) == len(list(SAGEMAKER_JOBS.glob("*.yaml"))) > 0


@pytest.mark.parametrize("file", IMPORTED_JOBS, ids=lambda file: str(file.stem))
def test_imported_jobs_are_taken(known: Kubectl, file: Path) -> None:
    text = re.sub(r"^  namespace: .*\n", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    taken = known("apply", "--dry-run=server", "-f", "-", stdin=text).splitlines()
    assert len(taken) == text.count("\nkind: ") > 0


async def test_a_resource_comes_back_as_it_was_meant(client: Client, namespace: str) -> None:
    written = resource(spec=full_resource()["spec"])
    created = await client.create(JOBS, namespace, written)
    job = validate(Document(dict(created)))
    assert job.spec == validate(Document(written)).spec
    assert job.metadata.uid
    assert job.metadata.creation_timestamp
    # every default of the types is a default of the schema, or means the same as an unset field
    assert fields(dict(created), "spec").items() <= serialise_spec(job).items()


# --- scalars

SCALARS = [
    text.removeprefix("v:").strip()
    for text in (case["text"] for case in json.loads(SCALAR_CASES.read_text())["cases"] if "error" not in case)
    if text.startswith("v: ") and text.count("\n") == 1
]


def test_scalars_mean_the_same_to_kubectl_and_to_muster(known: Kubectl) -> None:
    values = [scalar for scalar in SCALARS if is_read(scalar)]
    assert len(values) > 150
    lines = "".join(f"      v{index}: {scalar}\n" for index, scalar in enumerate(values))
    text = json.dumps(resource(spec=spec(suspend=True, template={"spec": {}})))
    text = to_yaml(json.loads(text)).replace("    spec: {}\n", f"    spec:\n{lines}")
    (document,) = load_documents(text, "job.yaml")
    read = fields(document.value, "spec", "template", "spec")
    (served,) = load_documents(known("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=text), "served")
    # kubectl apply removes nulls before it sends the resource
    assert exact(part(served.value, "spec", "template", "spec")) == exact(
        {name: value for name, value in read.items() if value is not None}
    )


def is_read(scalar: str) -> bool:
    """Whether muster accepts it as a scalar: what it refuses can't have another meaning."""
    try:
        (document,) = load_documents(f"v: {scalar}\n", "job.yaml")
    except NotReadable:
        return False
    return not isinstance(part(document.value, "v"), dict | list)


def exact(value: JSON) -> list[str]:
    """Text that distinguishes 1 from 1.0 and from True, a line for each field."""
    return [f"{name}: {json.dumps(item)}" for name, item in sorted(fields(value).items())]


# --- changes


@pytest.fixture(scope="module")
def twin(known: Kubectl) -> Iterator[Kubectl]:
    """kubectl on a cluster with the CRD of TWIN, too."""
    copied = build_crd()
    fields(copied)["metadata"] = {"name": f"{TWIN.plural}.{TWIN.group}"}
    fields(copied, "spec")["group"] = TWIN.group
    fields(copied, "spec")["names"] = {"kind": TWIN.name, "plural": TWIN.plural}
    known.define(json.dumps(copied))
    yield known
    known("delete", "crd", f"{TWIN.plural}.{TWIN.group}", "--wait=false")


@pytest.fixture
async def job(twin: Kubectl, client: Client, namespace: str) -> Object:
    del twin  # it is not None
    body = {**resource(spec=full_resource()["spec"]), "apiVersion": TWIN.api_version}
    return await client.create(TWIN, namespace, body)


ALLOWED: list[dict[str, JSON]] = [
    {"suspend": True},
    {"startupTimeoutSeconds": 61},
    {"activeDeadlineSeconds": None},
    {"cleanPodPolicy": "All"},
    {"cleanPodPolicy": "Running"},
    {"ttlSecondsAfterFinished": 86_400},
    {},
]
OTHERS: list[dict[str, JSON]] = [
    {"nodes": 3},
    {"procsPerNode": "Auto"},
    {"launcher": {"direct": {}, "torchrun": None}},
    {"image": "registry.example/train:2"},
    {"image": None},
    {"command": ["python", "other.py"]},
    {"source": {"git": None, "inline": {"files": {"other.py": "import train"}}}},
    {"env": []},
    {"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "other"}}}]},
    {"resources": {"limits": {"cpu": 0.75}}},
    {"resources": None},
    {"hyperparameters": {"lr": 4e-5}},
    {"metrics": None},
    {"inputs": None},
    {"output": None},
    {"checkpoint": {"volume": None}},
    {"network": {"interface": "eth0"}},
    {"template": {"spec": {"securityContext": {"runAsUser": 1001}}}},
    {"nodeOverrides": [{"nodes": "1", "template": {}}]},
    {"suspend": True, "nodes": 3},
]


async def change(client: Client, job: Object, changes: dict[str, JSON]) -> str:
    """Return the API server's refusal of a change of the spec."""
    namespace, name = part(dict(job), "metadata", "namespace"), part(dict(job), "metadata", "name")
    try:
        await client.merge(TWIN, str(namespace), str(name), {"spec": changes})
    except ApiError as error:
        if not error.is_refusal:
            raise
        return error.message
    return ""


@pytest.mark.parametrize("changes", ALLOWED, ids=str)
async def test_what_means_something_to_running_ranks_may_change(
    client: Client, job: Object, changes: dict[str, JSON]
) -> None:
    assert await change(client, job, changes) == ""


@pytest.mark.parametrize("changes", OTHERS, ids=str)
async def test_the_rest_changes_only_while_suspended(client: Client, job: Object, changes: dict[str, JSON]) -> None:
    said = await change(client, job, changes)
    assert f"spec: Forbidden: {IMMUTABLE_MESSAGE}" in said
    assert await change(client, job, {"suspend": True}) == ""
    assert await change(client, job, {**changes, "suspend": False}) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"sagemaker": {"instanceType": "ml.g5.12xlarge"}},
        {"sagemaker": {"spot": {"maxWaitSeconds": 90_000}}},
        {"backend": "Kubernetes", "sagemaker": None, "image": "registry.example/train:1"},
    ],
    ids=str,
)
async def test_a_training_job_is_made_of_what_was_accepted(
    twin: Kubectl, client: Client, namespace: str, changes: dict[str, JSON]
) -> None:
    del twin  # it is not None
    body = {**resource(spec=sagemaker_spec({}, {})), "apiVersion": TWIN.api_version}
    job = await client.create(TWIN, namespace, body)
    assert await change(client, job, {"failurePolicy": {"maxRestarts": 2}}) == ""
    assert f"spec: Forbidden: {IMMUTABLE_MESSAGE}" in await change(client, job, changes)
    assert await change(client, job, {"suspend": True}) == ""
    assert await change(client, job, {"failurePolicy": None, **changes, "suspend": False}) == ""


def test_every_field_is_among_the_changes() -> None:
    assert {name for changes in (*ALLOWED, *OTHERS) for name in changes} == fields(full_resource(), "spec").keys() - {
        "backend"
    }


async def test_an_empty_list_is_as_good_as_none(client: Client, job: Object) -> None:
    assert await change(client, job, {"suspend": True}) == ""
    assert await change(client, job, {"suspend": False, "metrics": None}) == ""
    assert await change(client, job, {"metrics": []}) == ""


@pytest.mark.parametrize(("accepted", "says"), [("False", ""), ("True", IMMUTABLE_MESSAGE)])
async def test_what_was_not_accepted_may_be_corrected(client: Client, job: Object, accepted: str, says: str) -> None:
    condition: JSON = {
        "type": "Accepted",
        "status": accepted,
        "reason": "Refused",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    namespace, name = part(dict(job), "metadata", "namespace"), part(dict(job), "metadata", "name")
    status: Object = {"status": {"phase": "Pending", "conditions": [condition]}}
    await client.merge(TWIN, str(namespace), str(name), status, "status")
    said = await change(client, job, {"nodes": 3})
    assert said.endswith(says)
    assert bool(said) == bool(says)


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
@pytest.mark.parametrize("is_suspended", [False, True])
async def test_a_job_that_is_over_keeps_its_spec(client: Client, job: Object, kind: str, *, is_suspended: bool) -> None:
    assert await change(client, job, {"suspend": is_suspended}) == ""
    end: dict[str, JSON] = {
        "type": kind,
        "status": "True",
        "reason": "Ended",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    refused: JSON = {**end, "type": "Accepted", "status": "False"}
    namespace, name = str(part(dict(job), "metadata", "namespace")), str(part(dict(job), "metadata", "name"))
    await client.merge(TWIN, namespace, name, {"status": {"conditions": [refused, end]}}, "status")
    changing = [changes for changes in (*ALLOWED, *OTHERS) if changes and "suspend" not in changes]
    changing.append({"suspend": not is_suspended})
    for changes in changing:
        assert f"spec: Forbidden: {ENDED_MESSAGE}" in await change(client, job, changes)
    await client.merge(TWIN, namespace, name, {"metadata": {"labels": {"team": "a"}}}, None)


async def test_kubectl_scale_is_a_change_like_any_other(twin: Kubectl, client: Client, job: Object) -> None:
    namespace, name = str(part(dict(job), "metadata", "namespace")), str(part(dict(job), "metadata", "name"))
    with pytest.raises(ApiError, match=IMMUTABLE_MESSAGE):
        await client.merge(TWIN, namespace, name, {"spec": {"replicas": 3}}, "scale")
    assert await change(client, job, {"suspend": True}) == ""
    twin("scale", "--replicas=3", f"--namespace={namespace}", f"{TWIN.plural}.{TWIN.group}/{name}")
    assert part(dict(await client.get(TWIN, namespace, name)), "spec", "nodes") == 3


async def test_a_list_of_jobs_reads_well(twin: Kubectl, client: Client, job: Object) -> None:
    namespace, name = str(part(dict(job), "metadata", "namespace")), str(part(dict(job), "metadata", "name"))
    status: Object = {
        "status": {
            "phase": "Running",
            "message": "Step 120",
            "attempt": 1,
            "ranks": {"world": 4, "running": 4, "ready": "4/4"},
            "progress": {"step": 120},
        }
    }
    await client.merge(TWIN, namespace, name, status, "status")
    said = twin("get", f"{TWIN.plural}.{TWIN.group}", f"--namespace={namespace}").splitlines()
    assert said[0].split() == ["NAME", "BACKEND", "PHASE", "NODES", "RANKS", "STEP", "RESTARTS", "AGE"]
    assert said[1].split()[:-1] == ["digits", "Kubernetes", "Running", "2", "4/4", "120"]
    wide = twin("get", f"{TWIN.plural}.{TWIN.group}", f"--namespace={namespace}", "-o", "wide").splitlines()
    assert wide[0].split()[-2:] == ["ATTEMPT", "MESSAGE"]
    assert wide[1].split()[-3:] == ["1", "Step", "120"]


# --- the cost of the rules

HEADROOM = 4
"""The rules could be this many times as expensive: the API server refuses a CRD whose rules may take too long.

The most expensive one (the channels' variables) uses 22 % of the limit for one rule, all of them 6 % of the limit for a
CRD.
"""


def costlier(schema: JSON, times: int) -> None:
    """Multiply the cost of every rule, for each rule and for all together."""
    if isinstance(schema, list):
        for item in schema:
            costlier(item, times)
    if not isinstance(schema, dict):
        return
    for name, below in schema.items():
        if name == "x-kubernetes-validations" and isinstance(below, list):
            for check in below:
                rule = str(part(check, "rule"))
                fields(check)["rule"] = " && ".join([f"({rule})"] * times)
        else:
            costlier(below, times)


def test_the_rules_cost_is_far_from_the_limit(known: Kubectl) -> None:
    heavy: JSON = copy.deepcopy(build_crd())
    costlier(heavy, HEADROOM)
    known("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(heavy))
