"""Resources on a real API server: its refusals equal the table of the unit tests, and it reads values as muster
does.
"""

import asyncio
import copy
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import starmap
from pathlib import Path

import pytest

from cluster.shared import Cluster, Kubectl
from muster.api.changes import ENDED_MESSAGE, IMMUTABLE_MESSAGE
from muster.api.crd import build_crd
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

SCALAR_CASES = Path(__file__).parents[1] / "unit" / "api" / "kubectl_scalars.json"
EXAMPLES = sorted((Path(__file__).parents[2] / "training" / "examples").glob("*/job.yaml"))
SAGEMAKER_JOBS = Path(__file__).parents[1] / "unit" / "render" / "sagemaker" / "jobs"
IMPORTED_JOBS = sorted((Path(__file__).parents[1] / "unit" / "importers" / "kubernetes" / "jobs").glob("*.yaml"))


@pytest.fixture(scope="module")
def known(cluster: Cluster, crd: None) -> Kubectl:
    """kubectl on a cluster with muster's current CRD."""
    del crd  # the cluster has it
    return Kubectl(cluster.kubeconfig)


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


def expected(row: BadResource, rules: set[str]) -> str:
    """Return the end of the message of a row that a rule of the CRD refuses; empty for the other rows."""
    if row.by != "cel":
        return ""
    ((_, message),) = problems(row.value)
    # one rule's message may be the end of another's
    return max((text for text in rules if message.endswith(text)), key=len)


async def test_the_api_server_refuses_what_the_table_says(client: Client) -> None:
    rows, rules = bad_resources(), messages(build_crd())
    refusals = await asyncio.gather(*(refusal(client, row.value) for row in rows))
    wrong = {
        f"{row.at} {row.says}": said
        for row, said in zip(rows, refusals, strict=True)
        if bool(said) != (row.by != "muster") or expected(row, rules) not in said
    }
    assert wrong == {}


def test_jobs_of_users_are_taken(known: Kubectl) -> None:
    """The examples, the jobs of launch scripts, and imported jobs."""
    texts = [file.read_text(encoding="utf-8") for file in (*EXAMPLES, *SAGEMAKER_JOBS.glob("*.yaml"))]
    # Their namespaces don't exist here.
    texts += [re.sub(r"^  namespace: .*\n", "", file.read_text("utf-8"), flags=re.MULTILINE) for file in IMPORTED_JOBS]
    whole = "\n---\n".join(texts)
    taken = known("apply", "--dry-run=server", "-f", "-", stdin=whole).splitlines()
    assert len(taken) == len(re.findall(r"^kind: ", whole, re.MULTILINE)) >= len(texts)


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
    return await create(client, namespace, "digits")


async def create(client: Client, namespace: str, name: str, spec: Mapping[str, JSON] | None = None) -> Object:
    """Create a job of TWIN, with all fields of the spec unless it is given."""
    body = resource(metadata={"name": name}, spec=dict(spec or fields(full_resource(), "spec")))
    return await client.create(TWIN, namespace, {**body, "apiVersion": TWIN.api_version})


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


async def test_what_means_something_to_running_ranks_may_change(twin: Kubectl, client: Client, namespace: str) -> None:
    del twin  # it is not None

    async def check(number: int, changes: dict[str, JSON]) -> None:
        job = await create(client, namespace, f"allowed-{number}")
        assert await change(client, job, changes) == "", changes

    await asyncio.gather(*starmap(check, enumerate(ALLOWED)))


async def test_the_rest_changes_only_while_suspended(twin: Kubectl, client: Client, namespace: str) -> None:
    del twin  # it is not None

    async def check(number: int, changes: dict[str, JSON]) -> None:
        job = await create(client, namespace, f"other-{number}")
        assert f"spec: Forbidden: {IMMUTABLE_MESSAGE}" in await change(client, job, changes), changes
        assert await change(client, job, {"suspend": True}) == "", changes
        assert await change(client, job, {**changes, "suspend": False}) == "", changes

    await asyncio.gather(*starmap(check, enumerate(OTHERS)))


SAGEMAKER_CHANGES: list[dict[str, JSON]] = [
    {"sagemaker": {"instanceType": "ml.g5.12xlarge"}},
    {"sagemaker": {"spot": {"maxWaitSeconds": 90_000}}},
    {"backend": "Kubernetes", "sagemaker": None, "image": "registry.example/train:1"},
]


async def test_a_training_job_is_made_of_what_was_accepted(twin: Kubectl, client: Client, namespace: str) -> None:
    del twin  # it is not None

    async def check(number: int, changes: dict[str, JSON]) -> None:
        job = await create(client, namespace, f"training-{number}", sagemaker_spec({}, {}))
        assert await change(client, job, {"failurePolicy": {"maxRestarts": 2}}) == ""
        assert f"spec: Forbidden: {IMMUTABLE_MESSAGE}" in await change(client, job, changes), changes
        assert await change(client, job, {"suspend": True}) == ""
        assert await change(client, job, {"failurePolicy": None, **changes, "suspend": False}) == "", changes

    await asyncio.gather(*starmap(check, enumerate(SAGEMAKER_CHANGES)))


def test_every_field_is_among_the_changes() -> None:
    assert {name for changes in (*ALLOWED, *OTHERS) for name in changes} == fields(full_resource(), "spec").keys() - {
        "backend"
    }


async def test_an_empty_list_is_as_good_as_none(client: Client, job: Object) -> None:
    assert await change(client, job, {"suspend": True}) == ""
    assert await change(client, job, {"suspend": False, "metrics": None}) == ""
    assert await change(client, job, {"metrics": []}) == ""


def condition(kind: str, status: str) -> JSON:
    return {
        "type": kind,
        "status": status,
        "reason": "Written",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }


@pytest.mark.parametrize(("accepted", "says"), [("False", ""), ("True", IMMUTABLE_MESSAGE)])
async def test_what_was_not_accepted_may_be_corrected(client: Client, job: Object, accepted: str, says: str) -> None:
    namespace, name = part(dict(job), "metadata", "namespace"), part(dict(job), "metadata", "name")
    status: Object = {"status": {"phase": "Pending", "conditions": [condition("Accepted", accepted)]}}
    await client.merge(TWIN, str(namespace), str(name), status, "status")
    said = await change(client, job, {"nodes": 3})
    assert said.endswith(says)
    assert bool(said) == bool(says)


async def test_a_job_that_is_over_keeps_its_spec(twin: Kubectl, client: Client, namespace: str) -> None:
    del twin  # it is not None

    async def check(kind: str, *, is_suspended: bool) -> None:
        name = f"over-{kind.lower()}-{is_suspended}".lower()
        job = await create(client, namespace, name)
        assert await change(client, job, {"suspend": is_suspended}) == ""
        status: JSON = {"conditions": [condition("Accepted", "False"), condition(kind, "True")]}
        await client.merge(TWIN, namespace, name, {"status": status}, "status")
        changing = [changes for changes in (*ALLOWED, *OTHERS) if changes and "suspend" not in changes]
        changing.append({"suspend": not is_suspended})
        for changes in changing:
            assert f"spec: Forbidden: {ENDED_MESSAGE}" in await change(client, job, changes), changes
        await client.merge(TWIN, namespace, name, {"metadata": {"labels": {"team": "a"}}}, None)

    kinds = [(kind, is_suspended) for kind in ("Complete", "Failed") for is_suspended in (False, True)]
    await asyncio.gather(*(check(kind, is_suspended=is_suspended) for kind, is_suspended in kinds))


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
