"""Every text field of a job that could name a foreign resource, with the list that allows it, or the reason why none
does.

Add new fields of the spec here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import get_args

from pydantic.alias_generators import to_camel

from muster.api.config.tenancy import check_tenancy
from muster.api.config.tenancy_fields import ALLOWANCES, Allowance
from muster.api.config.tenancy_spec import BucketGrant, Tenant
from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.schema import build_spec_schema
from muster.api.spec.job import Job, Metadata, Spec
from support.rows import check_rows

_OF_THE_NAMESPACE = "of the job's namespace, or its pods': RBAC, Pod Security and quotas of the cluster allow it"
_OF_THE_RANKS = "the operator hands it on: what is done with it is done with the rights of the job's role, or its pods'"
_WORD = "a word, or a name inside the job"
_PATH = "a path of the container"

NOT_LISTED: Mapping[str, str] = {
    "templateRef.name": "muster merges it before the rules of the namespace are applied",
    "image": "pulled with the rights of the job's role, or of its pods",
    "command[]": _OF_THE_RANKS,
    "failurePolicy.rules[].reasons[]": _WORD,
    "launcher.torchrun.args[]": _OF_THE_RANKS,
    "launcher.mpi.args[]": _OF_THE_RANKS,
    "env[].name": _WORD,
    "env[].value": _OF_THE_RANKS,
    "env[].valueFrom": _OF_THE_NAMESPACE,
    "hyperparameters": _OF_THE_RANKS,
    "source.inline.files{}": "the code itself",
    "source.configMap.name": _OF_THE_NAMESPACE,
    "source.git.commit": "what source.git.url has",
    "source.git.secretKeyRef.name": _OF_THE_NAMESPACE,
    "source.git.secretKeyRef.key": _OF_THE_NAMESPACE,
    "source.git.username": _WORD,
    "source.git.path": "what source.git.url has",
    "metrics[].name": _WORD,
    "metrics[].regex": _WORD,
    "inputs[].name": _WORD,
    "inputs[].contentType": _WORD,
    "inputs[].sagemaker.fileSystem.path": "a folder of what is listed; the file system knows who may read it",
    "inputs[].sagemaker.attributeNames[]": _WORD,
    "inputs[].sagemaker.instanceGroups[]": _WORD,
    **{
        f"{whose}.volume.{field}": _OF_THE_NAMESPACE
        for whose in ("inputs[]", "output", "checkpoint")
        for field in (
            "hostPath.path",
            "persistentVolumeClaim.claimName",
            "nfs.server",
            "nfs.path",
            "configMap.name",
            "secret.secretName",
        )
    },
    "resources.limits": _OF_THE_NAMESPACE,
    "resources.requests": _OF_THE_NAMESPACE,
    "resources.claims[]": _OF_THE_NAMESPACE,
    "nodePool.name": "the operator's configuration has it for all",
    "nodePool.instanceType": _WORD,
    "nodePool.nodeSelector{}": _OF_THE_NAMESPACE,
    "nodePool.tolerations[]": _OF_THE_NAMESPACE,
    "nodePool.sameLabels[]": _WORD,
    "queue.kueue": _OF_THE_NAMESPACE,
    "queue.volcano": "Volcano says who may use a queue",
    "queue.coscheduling.schedulerName": _OF_THE_NAMESPACE,
    "network.interface": _WORD,
    "template": _OF_THE_NAMESPACE,
    "nodeOverrides[].nodes": _WORD,
    "nodeOverrides[].template": _OF_THE_NAMESPACE,
    "procsPerNode": _WORD,
    "sagemaker.region": "of the account of a role that is listed; IAM says where it works",
    "sagemaker.instanceType": "quotas of the account",
    "sagemaker.instanceGroups[].name": _WORD,
    "sagemaker.instanceGroups[].instanceType": "quotas of the account",
    "sagemaker.placement.ultraServers[].ultraServerId": "a part of the training plan, which is listed",
    "sagemaker.framework.version": _WORD,
    "sagemaker.framework.pythonVersion": _WORD,
    "sagemaker.framework.pytorchVersion": _WORD,
    "sagemaker.framework.tensorflowVersion": _WORD,
    "sagemaker.containerEntrypoint[]": _OF_THE_RANKS,
    "sagemaker.containerArguments[]": _OF_THE_RANKS,
    "sagemaker.distribution.pytorchDdp.customMpiOptions": _OF_THE_RANKS,
    "sagemaker.distribution.dataParallel.customMpiOptions": _OF_THE_RANKS,
    "sagemaker.distribution.mpi.customMpiOptions": _OF_THE_RANKS,
    "sagemaker.distribution.modelParallel.parameters": _OF_THE_RANKS,
    "sagemaker.distribution.instanceGroup": _WORD,
    "sagemaker.rawHyperparameters{}": _OF_THE_RANKS,
    "sagemaker.checkpointPath": _PATH,
    "sagemaker.tags{}": "the job's to choose but for aws: and muster.dev/: nothing may be granted by the others",
    "sagemaker.debugger.localPath": _PATH,
    "sagemaker.debugger.parameters{}": _OF_THE_RANKS,
    "sagemaker.debugger.collections[].name": _WORD,
    "sagemaker.debugger.collections[].parameters{}": _OF_THE_RANKS,
    "sagemaker.profiler.parameters{}": _OF_THE_RANKS,
    "sagemaker.tensorBoard.localPath": _PATH,
    **{
        f"sagemaker.{whose}.rules[].{field}": reason
        for whose in ("debugger", "profiler")
        for field, reason in {
            "name": _WORD,
            "image": "pulled with the rights of the job's role",
            "instanceType": "quotas of the account",
            "localPath": _PATH,
            "parameters{}": "its processing job works as the job's role",
        }.items()
    },
    **{
        f"sagemaker.experiment.{field}": "a record beside others of the account, which it doesn't change"
        for field in ("experimentName", "trialName", "trialComponentDisplayName", "runName")
    },
}


def texts(schema: JSON, path: str) -> Iterator[str]:
    """Every field below `path` that may contain any text."""
    assert isinstance(schema, dict)
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if isinstance(properties, dict):
        for name, field in properties.items():
            yield from texts(field, f"{path}.{name}" if path else name)
    elif isinstance(others, dict):
        yield from texts(others, f"{path}{{}}")
    elif schema.get("type") == "array":
        yield from texts(schema["items"], f"{path}[]")
    elif "enum" not in schema and schema.get("type") not in {"integer", "number", "boolean"}:
        yield path


def test_every_text_of_the_spec_is_listed_or_has_a_reason_not_to_be() -> None:
    result = set(texts(build_spec_schema(), ""))
    assert result - set(ALLOWANCES) - set(NOT_LISTED) == set(), "new: decide who may use what stands there"
    assert set(ALLOWANCES) - result == set(), "no field any more"
    assert set(NOT_LISTED) - result == set(), "no field any more"
    assert set(ALLOWANCES) & set(NOT_LISTED) == set()


def test_every_list_that_fields_need_is_a_tenants() -> None:
    assert set(ALLOWANCES.values()) == set(get_args(Allowance))
    assert set(get_args(Allowance)) == {to_camel(name) for name in Tenant.model_fields} - {"namespaces"}


_ROLE = "arn:aws:iam::111122223333:role"
_ARN = "arn:aws:sagemaker:us-west-2:111122223333"


def everything(number: int) -> dict[str, JSON]:
    """Return a spec with a different name in each listed field; another number gives other names."""
    rules: JSON = [{"name": "r", "s3": f"s3://rules-{number}/x"}]
    # a rule allows only one of them in a job
    source: JSON = {
        "git": {"url": f"https://git-{number}.example/a", "commit": "0a" * 20},
        "s3": {"uri": f"s3://source-{number}/x"},
    }
    files: JSON = {"type": "EFS", "id": f"fs-0000000{number}", "path": "/"}
    return {
        "backend": "SageMaker",
        "launcher": {"perNode": {}},
        "command": ["c"],
        "source": source,
        "inputs": [
            {"name": "a", "s3": {"uri": f"s3://input-{number}/x"}},
            {"name": "b", "sagemaker": {"fileSystem": files}},
        ],
        "checkpoint": {"s3": f"s3://checkpoint-{number}/x"},
        "output": {"s3": f"s3://output-{number}/x"},
        "sagemaker": {
            "role": f"{_ROLE}/works-{number}",
            "assumeRoleArn": f"{_ROLE}/makes-{number}",
            "codeLocation": f"s3://code-{number}/x",
            "framework": {"name": "TensorFlow", "version": "2.16", "modelDir": f"s3://model-{number}/x"},
            "debugger": {"s3": f"s3://tensors-{number}/x", "rules": rules},
            "profiler": {"s3": f"s3://profile-{number}/x", "rules": [{"name": "r", "s3": f"s3://watch-{number}/x"}]},
            "tensorBoard": {"s3": f"s3://board-{number}/x"},
            "outputKmsKey": f"alias/output-{number}",
            "volumeKmsKey": f"alias/volume-{number}",
            "trainingPlanArn": f"{_ARN}:training-plan/plan-{number}",
            "vpc": {"subnets": [f"subnet-{number}"], "securityGroupIds": [f"sg-{number}"]},
            "imageRepository": {"credentialsProviderArn": f"arn:aws:lambda:::function:f-{number}"},
        },
    }


def values(spec: JSON, parts: tuple[str, ...]) -> list[str]:
    """Return the values of a field."""
    if not parts:
        assert isinstance(spec, str)
        return [spec]
    if parts[0] == "[]":
        assert isinstance(spec, list)
        return [found for item in spec for found in values(item, parts[1:])]
    return values(spec[parts[0]], parts[1:]) if isinstance(spec, dict) and parts[0] in spec else []


def named(field: str, number: int) -> list[str]:
    """Return the names that `everything` uses in this field."""
    return values(everything(number), tuple(field.replace("[]", ".[]").split(".")))


def allowed(fields: Mapping[str, Allowance], number: int) -> Tenant:
    """Return a tenant that may use the names of `everything` in these fields."""
    by_allowance: dict[str, list[str]] = {allowance: [] for allowance in get_args(Allowance)}
    for field, allowance in fields.items():
        by_allowance[allowance] += named(field, number)
    return Tenant(
        namespaces=("a",),
        buckets=tuple(BucketGrant(name=uri.removeprefix("s3://").partition("/")[0]) for uri in by_allowance["buckets"]),
        git_hosts=tuple(url.removeprefix("https://").partition("/")[0] for url in by_allowance["gitHosts"]),
        roles=tuple(by_allowance["roles"]),
        assume_role_arns=tuple(by_allowance["assumeRoleArns"]),
        aws_resources=tuple(by_allowance["awsResources"]),
    )


def refused(number: int, *tenants: Tenant) -> list[str]:
    """Return the fields in which `everything` of namespace `a` names a forbidden resource, by their names in the
    table.
    """
    spec = Spec.model_validate_json(json.dumps(everything(number)), by_alias=True, by_name=False)
    try:
        check_tenancy(Job(metadata=Metadata(name="vit", namespace="a"), spec=spec), tenants, "")
    except InvalidResource as problems:
        return [re.sub(r"\d+(?=])", "", problem.path.removeprefix("spec.")) for problem in problems.problems]
    return []


def test_nothing_of_another_namespace_can_be_named_in_any_field() -> None:
    theirs = allowed(ALLOWANCES, 2).model_copy(update={"namespaces": ("b",)})
    assert sorted(refused(2, allowed(ALLOWANCES, 1), theirs)) == sorted(ALLOWANCES)


def test_each_field_is_asked_about_by_itself() -> None:
    def check(field: str) -> None:
        assert named(field, 1) != []
        others = {name: allowance for name, allowance in ALLOWANCES.items() if name != field}
        assert refused(1, allowed(others, 1)) == [field]

    check_rows(ALLOWANCES, check)
