"""Builders for the tests of the api."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from muster.api.crd import build_crd
from muster.api.document import JSON, Document
from muster.api.field_problems import InvalidResource
from muster.api.validation.validate import validate
from muster.api.yaml.load import load_documents

HERE = Path(__file__).parent


def spec(**changes: JSON) -> dict[str, JSON]:
    base: dict[str, JSON] = {
        "nodes": 2,
        "procsPerNode": 2,
        "launcher": {"torchrun": {}},
        "command": ["python", "train.py"],
    }
    return {**base, **changes}


def resource(**changes: JSON) -> dict[str, JSON]:
    base: dict[str, JSON] = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "digits"},
        "spec": spec(),
    }
    return {**base, **changes}


@dataclass(frozen=True)
class BadResource:
    """A row of bad_resources.yaml."""

    at: str
    says: str
    by: str
    value: dict[str, JSON]


@lru_cache
def bad_resources() -> list[BadResource]:
    (table,) = load_documents((HERE / "bad_resources.yaml").read_text(), "bad_resources.yaml")
    return [_bad_resource(row) for row in table.value] if isinstance(table.value, list) else []


def _bad_resource(row: JSON) -> BadResource:
    assert isinstance(row, dict)
    changed = row.get("spec", {})
    whole = row.get("resource", {})
    assert isinstance(changed, dict)
    assert isinstance(whole, dict)
    return BadResource(str(row["at"]), str(row["says"]), str(row["by"]), resource(**{"spec": spec(**changed), **whole}))


def full_resource() -> dict[str, JSON]:
    """Return a valid resource with every field of the spec."""
    return resource(
        metadata={"name": "digits", "namespace": "research", "labels": {"team": "vision"}},
        spec=spec(
            backend="Kubernetes",
            suspend=False,
            launcher={"torchrun": {"args": ["--tee", "3", "--log-dir=/tmp/logs"]}},
            image="registry.example/train:1",
            env=[
                {"name": "OMP_NUM_THREADS", "value": "1"},
                {"name": "EMPTY"},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
            ],
            resources={
                "limits": {"nvidia.com/gpu": 8, "cpu": 0.5},
                "requests": {"memory": "64Gi"},
                "claims": [{"name": "a"}],
            },
            hyperparameters={"epochs": 10, "lr": 3e-5, "amp": True, "optimizer": "sgd", "y": "yes"},
            metrics=[{"name": "loss", "regex": "loss=([0-9.]+)"}],
            inputs=[
                {"name": "train", "contentType": "image/png", "volume": {"hostPath": {"path": "/data/train"}}},
                {"name": "validation", "volume": {"nfs": {"server": "files.example", "path": "/validation"}}},
                {"name": "words", "volume": {"configMap": {"name": "words"}}},
                {"name": "keys", "volume": {"secret": {"secretName": "keys"}}},
                {"name": "more", "s3": {"uri": "s3://data/more", "distribution": "ShardedByS3Key"}},
            ],
            source={"git": {"url": "https://git.example/team/code.git", "commit": "0a" * 20, "path": "training"}},
            output={"volume": {"persistentVolumeClaim": {"claimName": "results"}}},
            checkpoint={"volume": {"hostPath": {"path": "/data/checkpoints"}}},
            network={"interface": "^docker0,lo"},
            startupTimeoutSeconds=60,
            activeDeadlineSeconds=3600,
            cleanPodPolicy="None",
            ttlSecondsAfterFinished=600,
            template=full_template(),
            nodeOverrides=[{"nodes": "0-1", "template": {"spec": {"nodeSelector": {"zone": "b"}}}}],
        ),
    )


def full_template() -> dict[str, JSON]:
    """Return a partial pod template with all fields that the rules check."""
    trainer: JSON = {
        "name": "trainer",
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
        "volumeMounts": [{"name": "cache", "mountPath": "/opt/ml/cache"}],
        "resources": {"limits": {"cpu": 4}},
    }
    return {
        "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "a"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [trainer, {"name": "log", "image": "log:1", "command": ["log"], "env": [{"name": "RANK"}]}],
            "initContainers": [{"name": "fetch", "image": "fetch:1"}],
            "volumes": [{"name": "cache", "emptyDir": {}}],
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {"runAsUser": 1000},
        },
    }


def problems(value: JSON) -> list[tuple[str, str]]:
    """Path and message of all problems; empty if the resource is valid."""
    try:
        validate(Document(value))
    except InvalidResource as error:
        return [(problem.path, problem.message) for problem in error.problems]
    return []


def as_text(value: Mapping[str, JSON]) -> str:
    return json.dumps(value)


def part(value: JSON, *path: str | int) -> JSON:
    """Return the value at `path` of a JSON value."""
    for key in path:
        if isinstance(key, str):
            assert isinstance(value, dict)
            value = value[key]
        else:
            assert isinstance(value, list)
            value = value[key]
    return value


def fields(value: JSON, *path: str | int) -> dict[str, JSON]:
    """Return the map at `path`."""
    result = part(value, *path)
    assert isinstance(result, dict)
    return result


def openapi_schema() -> dict[str, JSON]:
    """Return the CRD's schema for the API server."""
    return fields(build_crd(), "spec", "versions", 0, "schema", "openAPIV3Schema")
