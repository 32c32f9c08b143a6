"""Refusals of the API server: reported at once, and when the cause is removed the job continues by itself."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.reasons.stage import Stage
from cluster.reasons.timeline import ObservedChange, Predicate, condition
from cluster.shared import Manifest


def applied(name: str) -> Predicate:
    """Only the operator gets the API server's refusal of its pods: it sends a dry run as soon as the job exists."""
    return lambda seen: seen.kind == "Job" and seen.name == name and seen.type == "ADDED"


def refused(stage: Stage, name: str, reason: str, *says: str) -> ObservedChange:
    value = stage.wait_for_reason(name, applied(name), reason, "Scheduled")
    message = value.status["message"]
    assert all(part in message for part in says), message
    assert condition(value, "Accepted")["status"] == "True"
    assert stage.jobs.children(name, "pods") == set()
    return value


@contextmanager
def there_is(stage: Stage, *manifests: Manifest) -> Iterator[None]:
    """These objects exist inside the block."""
    stage.kubectl.apply(*manifests)
    try:
        yield
    finally:
        for manifest in manifests:
            metadata = manifest["metadata"]
            assert isinstance(metadata, dict)
            stage.kubectl(
                "delete",
                str(manifest["kind"]),
                metadata["name"],
                "--ignore-not-found",
                "--wait=false",
                *([f"--namespace={metadata['namespace']}"] if "namespace" in metadata else []),
            )


def test_a_node_that_kubernetes_does_not_accept(stage: Stage) -> None:
    """One pod of each kind is sent before any is created."""
    override = {"nodes": "1", "template": {"spec": {"tolerations": [{"operator": "Sometimes"}]}}}
    stage.apply("odd-node", nodes=2, nodeOverrides=[override])
    value = stage.wait_for_reason("odd-node", applied("odd-node"), "InvalidObject")
    assert "spec.template.spec.tolerations" in value.status["message"]
    assert condition(value, "Accepted")["reason"] == "InvalidObject"
    assert stage.jobs.children("odd-node", "pods") == set()


def test_pod_security(stage: Stage) -> None:
    level = "pod-security.kubernetes.io/enforce"
    stage.kubectl("label", "namespace", stage.namespace, f"{level}=restricted")
    try:
        stage.apply("unsafe")
        value = refused(stage, "unsafe", "PodSecurity", "spec.template", "runAsNonRoot", "restricted")
    finally:
        stage.kubectl("label", "namespace", stage.namespace, f"{level}-")
    assert condition(value, "Stalled")["reason"] == "PodSecurity"
    stage.completes("unsafe")
    stage.warned_once("unsafe", "PodSecurity")


def test_a_quota_that_is_raised(stage: Stage) -> None:
    metadata = {"name": "team", "namespace": stage.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    with there_is(stage, {**quota, "spec": {"hard": {"requests.cpu": "500m"}}}):
        stage.kubectl.wait("jsonpath={.status.hard}", "quota/team", f"--namespace={stage.namespace}")
        stage.apply("greedy", resources={"requests": {"cpu": "600m"}})
        value = refused(stage, "greedy", "QuotaExceeded", "team", "requests.cpu=600m", "limit")
        assert condition(value, "Stalled")["status"] == "False"
        stage.kubectl.apply({**quota, "spec": {"hard": {"requests.cpu": "100"}}})
        stage.completes("greedy")
    stage.warned_once("greedy", "QuotaExceeded")


def test_an_admission_policy(stage: Stage) -> None:
    name = f"{stage.namespace}-owners"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    message = "every pod needs a label team: see the handbook"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
            "validations": [{"expression": "'team' in object.metadata.labels", "message": message}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    with there_is(stage, policy, binding):
        until_in_force(stage)
        stage.apply("stray")
        value = refused(stage, "stray", "AdmissionRefused", name, message)
    assert condition(value, "Stalled")["reason"] == "AdmissionRefused"
    stage.completes("stray")
    stage.warned_once("stray", "AdmissionRefused")


def test_a_webhook_that_is_not_there(stage: Stage) -> None:
    name = f"guard.{stage.namespace}.example.com"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    webhook = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}},
        "clientConfig": {"service": {"name": "guard", "namespace": stage.namespace}},
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
    with there_is(stage, configuration):
        until_in_force(stage)
        stage.apply("unheard")
        refused(stage, "unheard", "AdmissionRefused", name, "doesn't answer", "guard")
    stage.completes("unheard")
    stage.warned_once("unheard", "AdmissionRefused")


def until_in_force(stage: Stage) -> None:
    """API servers get policies and webhooks by watches, and there is no event for it: poll."""
    pod = ("run", "probe", "--image=none", "--dry-run=server", "--restart=Never", f"--namespace={stage.namespace}")
    for _ in range(200):
        try:
            stage.kubectl(*pod)
        except AssertionError:
            return
    pytest.fail("pods are still let in")
