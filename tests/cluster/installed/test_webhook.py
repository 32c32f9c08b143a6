"""`kubectl apply` fails for jobs that the operator would refuse, with any replica, and only for those."""

import base64
import json

import pytest

from cluster.held_job import JOB, held_job
from cluster.installation import Installation
from cluster.shared import Kubectl, Manifest


def slip(name: str, namespace: str) -> Manifest:
    job = held_job(name, namespace)
    containers = [{"name": "traner", "image": "a", "volumeMount": []}]
    return with_spec(job, suspend=True, template={"spec": {"containers": containers}})


def with_spec(job: Manifest, **changes: object) -> Manifest:
    spec = job["spec"]
    assert isinstance(spec, dict)
    return {**job, "spec": {**spec, **changes}}


def refusal(kubectl: Kubectl, job: Manifest, *options: str) -> str:
    with pytest.raises(AssertionError) as refused:
        kubectl("apply", "-f", "-", *options, stdin=json.dumps(job))
    return str(refused.value)


def test_a_job_is_refused_with_all_that_is_wrong(installed_operator: Installation) -> None:
    kubectl, own = installed_operator.kubectl, installed_operator.namespace
    for options in ((), ("--dry-run=server",)):
        said = refusal(kubectl, slip("slip", own), *options)
        assert 'The DistributedTrainingJob "slip" is invalid' in said
        assert 'spec.template.spec.containers[0].volumeMount: found "volumeMount" (did you mean volumeMounts?)' in said
        assert 'spec.template.spec.containers[0].name: found "traner"' in said
    tenant = held_job("tenant", own)
    source = {"git": {"url": "https://git.example/a", "commit": "0" * 40}}
    said = refusal(kubectl, with_spec(tenant, source=source))
    assert f'spec.source.git.url: found "https://git.example/a"; this host is not allowed in namespace {own}' in said


def test_jobs_of_other_namespaces_are_nobodys_business(installed_operator: Installation, namespace: str) -> None:
    installed_operator.kubectl.apply(slip("slip", namespace))
    installed_operator.kubectl("delete", JOB, "slip", f"--namespace={namespace}")


def test_every_replica_is_asked_and_trusted(installed_operator: Installation) -> None:
    kubectl, system = installed_operator.kubectl, installed_operator.system
    document = json.loads(kubectl("get", "validatingwebhookconfiguration", f"muster-{system}", "--output=json"))
    secret = json.loads(kubectl("get", "secret", "muster-collector", f"--namespace={system}", "--output=json"))
    authorities = json.loads(base64.b64decode(secret["data"]["authorities.json"]))["authorities"]
    bundle = base64.b64decode(document["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    assert bundle == "".join(each["certificate"] for each in authorities)
    slices = json.loads(
        kubectl(
            *("get", "endpointslices", f"--namespace={system}", "--output=json"),
            "--selector=kubernetes.io/service-name=muster-webhook",
        )
    )
    addresses = {address for item in slices["items"] for each in item["endpoints"] for address in each["addresses"]}
    assert len(addresses) == len(installed_operator.pods) == 2
