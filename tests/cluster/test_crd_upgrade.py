"""Jobs that were stored with the previous version's CustomResourceDefinition, after an upgrade of the definition."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import chart
from cluster.previous_chart import read_previous_crds
from cluster.shared import Kubectl
from cluster.test_resources import EXAMPLES, SAGEMAKER_JOBS
from muster.api.crd import build_crds
from muster.api.field_problems import InvalidResource
from muster.api.names import GROUP, KIND, PLURAL
from muster.cli.crds.apply import apply_crd
from muster.cli.crds.version import VERSION_ANNOTATION
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CRDS, JOBS
from muster.objects.kubernetes.resource import read_resource
from unit.api.api_resources import full_resource

UPGRADED = "upgraded.test"
"""The group of the definitions of this test, which no operator of the cluster watches."""
ACCOUNT = "muster-crds"
FILES = [*EXAMPLES, *sorted(SAGEMAKER_JOBS.glob("*.yaml"))]


def in_group(crd: dict[str, Any]) -> dict[str, Any]:
    """Return the definition with the group of this test."""
    names = {key: value for key, value in crd["spec"]["names"].items() if key not in {"shortNames", "categories"}}
    metadata = {"name": crd["metadata"]["name"].replace(GROUP, UPGRADED)}
    return {**crd, "metadata": metadata, "spec": {**crd["spec"], "group": UPGRADED, "names": names}}


OLD = {crd["metadata"]["name"]: crd for crd in map(in_group, map(yaml.safe_load, read_previous_crds()))}
NEW = {crd["metadata"]["name"]: crd for crd in map(in_group, build_crds())}
JOBS_CRD = f"{PLURAL}.{UPGRADED}"
RESOURCE = f"{PLURAL}.{UPGRADED}"


def stored_jobs() -> list[dict[str, Any]]:
    """Return jobs that use all fields of the resource, and the examples, each with a status."""
    documents = [full_resource(), *(yaml.safe_load(file.read_text(encoding="utf-8")) for file in FILES)]
    jobs = [{**each, "metadata": {"name": f"job-{number}"}} for number, each in enumerate(documents)]
    return [{**job, "apiVersion": f"{UPGRADED}/v1alpha1"} for job in jobs if job["kind"] == KIND]


STATUS = {"phase": "Running", "attempt": 2, "message": "4 of 4 ranks run", "observedGeneration": 1}


@pytest.fixture
async def hook(kubectl: Kubectl, namespace: str, tmp_path: Path) -> AsyncIterator[Client]:
    """Yield a client with the rights of the chart's hook, for the definitions of this test."""
    objects = chart.render({"image": {"repository": "x"}})
    [rule] = chart.one(objects, "ClusterRole", f"muster-crds-{chart.NAMESPACE}")["rules"]
    assert set(rule["resourceNames"]) == {name.replace(UPGRADED, GROUP) for name in NEW}
    metadata = {"name": f"crds-{namespace}"}
    role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **metadata}
    kubectl("create", "serviceaccount", ACCOUNT, f"--namespace={namespace}")
    kubectl.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": [{**rule, "resourceNames": list(NEW)}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": role_ref,
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    )
    config = yaml.safe_load(kubectl("config", "view", "--raw", "--flatten", "--minify"))
    token = kubectl("create", "token", ACCOUNT, f"--namespace={namespace}").strip()
    config["users"] = [{**config["users"][0], "user": {"token": token}}]
    file = tmp_path / "hook.kubeconfig"
    file.write_text(json.dumps(config), encoding="utf-8")
    client = await Client.connect(str(file))
    yield client
    await client.close()
    kubectl("delete", "clusterrole,clusterrolebinding", metadata["name"])
    kubectl("delete", "crd", *NEW, "--ignore-not-found")


async def test_jobs_of_the_previous_version_stay_readable(kubectl: Kubectl, hook: Client, namespace: str) -> None:
    inside = f"--namespace={namespace}"
    for crd in OLD.values():
        kubectl.define(json.dumps(crd))
    jobs = stored_jobs()
    kubectl.apply(*({**job, "metadata": {**job["metadata"], "namespace": namespace}} for job in jobs))
    for job in jobs:
        name = job["metadata"]["name"]
        patch = json.dumps({"status": STATUS})
        kubectl("patch", RESOURCE, name, inside, "--subresource=status", "--type=merge", f"--patch={patch}")
    before = read_all(kubectl, inside)
    assert len(before) == len(jobs) > 10

    for name, crd in NEW.items():
        done = "updated" if name in OLD else "created"
        assert await apply_crd(hook, crd, "0.2.0") == f"{name}: {done}, of muster 0.2.0"

    after = read_all(kubectl, inside)
    for name, job in before.items():
        assert kept(job["spec"], after[name]["spec"]), name
        assert kept(job["status"], after[name]["status"]), name
        resource = read_resource({**after[name], "apiVersion": JOBS.api_version})
        assert not isinstance(resource.job, InvalidResource), resource.job
        # The API server checks the stored job again at each write of its status.
        patch = json.dumps({"status": {"phase": "Restarting"}})
        kubectl("patch", RESOURCE, name, inside, "--subresource=status", "--type=merge", f"--patch={patch}")
    stored = json.loads(kubectl("get", "crd", JOBS_CRD, "--output=json"))
    assert stored["status"]["storedVersions"] == ["v1alpha1"]
    assert stored["metadata"]["annotations"][VERSION_ANNOTATION] == "0.2.0"
    new_version = NEW[JOBS_CRD]["spec"]["versions"][0]
    columns = [column["name"] for column in stored["spec"]["versions"][0]["additionalPrinterColumns"]]
    assert columns == [column["name"] for column in new_version["additionalPrinterColumns"]]

    assert "kept, because it is of muster 0.2.0" in await apply_crd(hook, OLD[JOBS_CRD], "0.1.0")
    assert json.loads(kubectl("get", "crd", JOBS_CRD, "--output=json"))["spec"] == stored["spec"]


async def test_the_hook_creates_missing_definitions_and_may_change_no_others(hook: Client) -> None:
    for name, crd in NEW.items():
        assert await apply_crd(hook, crd, "0.2.0") == f"{name}: created, of muster 0.2.0"
        assert await apply_crd(hook, crd, "0.2.0") == f"{name}: updated, of muster 0.2.0"
    other = {**NEW[JOBS_CRD], "metadata": {"name": f"others.{UPGRADED}"}}
    with pytest.raises(ApiError, match="forbidden"):
        await hook.apply(CRDS, None, f"others.{UPGRADED}", other)


def read_all(kubectl: Kubectl, inside: str) -> dict[str, dict[str, Any]]:
    items = json.loads(kubectl("get", RESOURCE, inside, "--output=json"))["items"]
    return {item["metadata"]["name"]: item for item in items}


def kept(before: Any, after: Any) -> bool:
    """Whether all values are still there. A new version may add defaults."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(key in after and kept(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return isinstance(after, list) and len(before) == len(after) and all(map(kept, before, after))
    return bool(before == after)
