"""`muster operator` as a webhook of a real API server: requests of a tenant, and the effect of an outage."""

import base64
import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from cluster.helm import CHART, Helm
from cluster.muster_command import Muster
from cluster.operator.operator_process import OperatorProcess, Replicas, account, replicas
from cluster.shared import Kubectl, Manifest, SharedCluster
from muster.api.crd import PLURALS, format_crd_yaml
from support.free_port import free_port

ADDRESS = "127.0.0.1"
"""The address at which this machine's API server reaches a process of this machine."""

GOOD: Manifest = {"suspend": True, "launcher": {"direct": {}}, "command": ["true"], "image": "a"}


RULE: Manifest = {
    "apiGroups": ["muster.dev"],
    "apiVersions": ["v1alpha1"],
    "resources": ["distributedtrainingjobs"],
}


def job(name: str, **spec: object) -> Manifest:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name},
        "spec": {**GOOD, **spec},
    }


def configuration(namespace: str, port: int, bundle: str) -> Manifest:
    """Return the chart's configuration, with a URL."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"muster-{namespace}"},
        "webhooks": [
            {
                "name": "jobs.muster.dev",
                "clientConfig": {"url": f"https://{ADDRESS}:{port}/jobs", "caBundle": bundle},
                "rules": [{**RULE, "operations": ["CREATE", "UPDATE"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "timeoutSeconds": 3,
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


def read_match_conditions(webhook: str) -> list[Manifest]:
    """Return the conditions of a webhook in the chart."""
    text = (CHART / "templates" / "webhook.yaml").read_text(encoding="utf-8")
    _, _, rest = text.partition(f"- name: {webhook}\n")
    conditions: list[Manifest] = yaml.safe_load(rest.partition("matchConditions:\n")[2].partition("  failurePolicy")[0])
    return conditions


def merging(namespace: str, port: int, bundle: str) -> Manifest:
    """Return the chart's configuration of the webhook that merges templates, with a URL."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": f"muster-{namespace}"},
        "webhooks": [
            {
                "name": "templates.muster.dev",
                "clientConfig": {"url": f"https://{ADDRESS}:{port}/job-templates", "caBundle": bundle},
                "rules": [{**RULE, "operations": ["CREATE", "UPDATE"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "matchConditions": read_match_conditions("templates.muster.dev"),
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 3,
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


class Site:
    """A leader, a standby to which the API server sends reviews, and a tenant's kubectl."""

    def __init__(self, kubectl: Kubectl, namespace: str, operators: Replicas) -> None:
        self.kubectl, self.namespace = kubectl, namespace
        self.leader = operators.start()
        port = free_port()
        operators.options = (f"--webhook-port={port}", f"--webhook-address={ADDRESS}")
        self.standby: OperatorProcess = operators.start()
        secret = json.loads(self.run("get", "secret", "muster-collector", "--output=json"))
        authorities = json.loads(base64.b64decode(secret["data"]["authorities.json"]))["authorities"]
        bundle = base64.b64encode("".join(each["certificate"] for each in authorities).encode()).decode()
        kubectl.apply(configuration(namespace, port, bundle), merging(namespace, port, bundle))

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        return self.kubectl(*arguments, f"--namespace={self.namespace}", stdin=stdin)

    def read(self, name: str) -> Any:
        """Return the spec of a job."""
        return json.loads(self.run("get", f"dtj/{name}", "--output=json"))["spec"]

    def apply(self, manifest: Manifest, *options: str) -> str:
        """Return the API server's refusal; empty if it accepts the job."""
        try:
            self.run("apply", "-f", "-", *options, stdin=json.dumps(manifest))
        except AssertionError as refused:
            return str(refused)
        return ""


@pytest.fixture(scope="module")
def asked(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    shared_cluster.up()
    kubectl, folder = Kubectl(shared_cluster.kubeconfig), tmp_path_factory.mktemp("webhook")
    namespace = f"test-webhook-{folder.name[-3:]}-{free_port()}"
    for plural in PLURALS:
        kubectl.define(format_crd_yaml(plural))
    with contextlib.ExitStack() as stack:
        kubectl("create", "namespace", namespace)
        stack.callback(kubectl, "delete", "namespace", namespace, "--wait=false")
        rights = account(kubectl, Helm(shared_cluster.kubeconfig), namespace, folder)
        operators = stack.enter_context(replicas(kubectl, rights, namespace, folder))
        for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
            stack.callback(kubectl, "delete", kind, f"muster-{namespace}", "--ignore-not-found")
        yield Site(kubectl, namespace, operators)


def template(name: str, **spec: object) -> Manifest:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "TrainingTemplate",
        "metadata": {"name": name},
        "spec": {"launcher": {"direct": {}}, "image": "a", **spec},
    }


def job_of(template_name: str, name: str, **spec: object) -> Manifest:
    """Return a job that has only its command, and takes the rest from the template."""
    return {
        **job(name),
        "spec": {"suspend": True, "command": ["true"], "templateRef": {"name": template_name}, **spec},
    }


def test_a_new_job_gets_the_values_of_its_template(asked: Site) -> None:
    assert asked.apply(template("small", resources={"limits": {"cpu": 1, "memory": "1Gi"}}, warmStart="Off")) == ""
    assert asked.apply(job_of("small", "templated", resources={"limits": {"memory": "2Gi"}})) == ""

    spec = asked.read("templated")
    assert spec["launcher"] == {"direct": {}}
    assert spec["resources"] == {"limits": {"cpu": 1, "memory": "2Gi"}}
    assert spec["warmStart"] == "Off"
    assert spec["templateRef"] == {"kind": "TrainingTemplate", "name": "small", "generation": 1}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({}, "spec: Required value", id="no spec"),
        pytest.param(
            {"spec": {"templateRef": {"name": "listed"}, "command": ["true"], "env": [{"name": ["A"]}]}},
            "spec.env[1].name: found a list",
            id="a list as a name",
        ),
    ],
)
def test_a_malformed_job_is_refused_by_its_field(asked: Site, fields: Manifest, problem: str) -> None:
    assert asked.apply(template("listed", env=[{"name": "B", "value": "1"}])) == ""
    malformed = {**{name: field for name, field in job("malformed").items() if name != "spec"}, **fields}

    assert problem in asked.apply(malformed, "--validate=false")


def test_a_template_of_the_cluster_is_for_jobs_of_all_namespaces(asked: Site) -> None:
    name = asked.namespace
    shared = {**template(name), "kind": "ClusterTrainingTemplate"}
    assert asked.apply(shared) == ""
    try:
        reference = {"kind": "ClusterTrainingTemplate", "name": name}
        assert asked.apply(job_of(name, "of-the-cluster", templateRef=reference)) == ""
        assert asked.read("of-the-cluster")["image"] == "a"
    finally:
        asked.run("delete", "clustertrainingtemplate", name)


def test_a_job_is_created_from_a_file_though_its_template_is_only_on_the_cluster(asked: Site, tmp_path: Path) -> None:
    assert asked.apply(template("kept", env=[{"name": "A", "value": "1"}])) == ""
    muster, file = Muster(asked.kubectl.kubeconfig, asked.namespace), tmp_path / "job.yaml"

    def create(manifest: Manifest) -> CompletedProcess[str]:
        file.write_text(json.dumps(manifest), encoding="ascii")
        return muster("run", "--on", "cluster", "-f", str(file), "--detach")

    created = create(job_of("kept", "from-a-file"))
    assert created.returncode == 0, created.stderr
    spec = asked.read("from-a-file")
    assert (spec["image"], spec["env"]) == ("a", [{"name": "A", "value": "1"}])
    assert spec["templateRef"]["generation"] == 1
    again = create(job_of("kept", "from-a-file"))
    assert (again.returncode, "--replace deletes it" in again.stderr) == (2, True)
    missing = create(job_of("nowhere", "orphan"))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "there is no TrainingTemplate nowhere in the namespace" in missing.stderr


SETTINGS: Manifest = {
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
    "metrics": [{"name": "loss", "regex": "loss=(.*)"}],
    "template": {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
    "warmStart": "Off",
    "cleanPodPolicy": "All",
}
OWN: Manifest = {
    "env": [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
    "metrics": [{"name": "speed", "regex": "speed=(.*)"}],
    "template": {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}},
    "warmStart": "Auto",
    "cleanPodPolicy": "Running",
}


@pytest.mark.parametrize("is_suspended", [True, False])
@pytest.mark.parametrize("options", [(), ("--server-side", "--field-manager=gitops")], ids=["client", "server"])
def test_a_file_that_is_applied_again_changes_nothing(
    asked: Site, options: tuple[str, ...], *, is_suspended: bool
) -> None:
    name = f"again-{len(options)}-{'held' if is_suspended else 'runs'}"
    assert asked.apply(template(name, **SETTINGS)) == ""
    mine = job_of(name, name, suspend=is_suspended, **OWN)
    assert asked.apply(mine, *options) == ""
    spec = asked.read(name)
    assert [each["name"] for each in spec["env"]] == ["A", "B", "C"]
    assert len(spec["template"]["spec"]["tolerations"]) == 2
    assert (spec["warmStart"], spec["cleanPodPolicy"]) == ("Off", "All")
    # The template changes, and a GitOps tool applies the file again.
    assert asked.apply(template(name, image="b")) == ""
    assert asked.apply(mine, *options) == ""
    assert asked.read(name) == spec
    asked.run("delete", f"dtj/{name}", "--wait=false")


def test_who_does_not_answer_keeps_no_job_out_and_the_operator_says_it(asked: Site) -> None:
    asked.standby.signal(signal.SIGTERM)
    assert asked.apply(job("late", template={"metadata": {"name": "a"}})) == ""
    asked.kubectl.wait("jsonpath={.status.phase}=Refused", "dtj/late", f"--namespace={asked.namespace}")
    assert asked.leader.runs
    # A job with a template would run without it.
    assert 'failed calling webhook "templates.muster.dev"' in asked.apply(job_of("small", "later"))
