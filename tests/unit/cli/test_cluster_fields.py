from dataclasses import replace
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.spec.job import Spec
from muster.cli.options import RunOptions
from muster.cli.run.cluster_fields import make_cluster_notes
from support.valid_jobs import make_job

OPTIONS = RunOptions(
    file="job.yaml",
    inputs={},
    checkpoint=None,
    folder=None,
    keeps_here=False,
    shows_logs=False,
    ranks=frozenset(),
    output=None,
)
CLAIM: JSON = {"persistentVolumeClaim": {"claimName": "a"}}
ALL: dict[str, JSON] = {
    "image": "train:1",
    "resources": {"limits": {"cpu": 1}},
    "output": {"volume": {"hostPath": {"path": "/results"}}},
    "checkpoint": {"volume": CLAIM},
    "nodePool": {"name": "p5"},
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 60,
    "queue": {"kueue": "team"},
    "template": {"spec": {}},
    "nodeOverrides": [{"nodes": "0", "template": {}}],
    "sagemaker": {"instanceType": "ml.g5.xlarge"},
}

USED_HERE = (
    *("backend", "suspend", "nodes", "procsPerNode", "launcher", "command", "env", "hyperparameters", "metrics"),
    *("inputs", "network", "source", "warmStart", "startupTimeoutSeconds", "activeDeadlineSeconds", "failurePolicy"),
    *("elastic", "totalSteps", "templateRef"),
    # the installation of the agent changes nothing where the agent already exists
    "agent",
)


def notes(spec: dict[str, JSON], options: RunOptions = OPTIONS) -> tuple[str, ...]:
    return make_cluster_notes(make_job("vit", {"launcher": {"direct": {}}, "command": ["train"], **spec}), options)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"backend": "Kubernetes", "suspend": False, "resources": {}, "template": {}, "checkpoint": {}},
        {"cleanPodPolicy": "Running"},
        {"checkpoint": {"volume": {"hostPath": {"path": "/snapshots"}}}},
    ],
    ids=str,
)
def test_a_file_without_a_clusters_fields_needs_no_note(spec: dict[str, JSON]) -> None:
    assert notes(spec) == ()


def test_what_is_not_used_here_is_said_in_one_line() -> None:
    assert notes({"image": "train:1", "template": {"spec": {}}}) == (
        "ignored here, because they are for a cluster: image, template",
    )
    everything = (
        "image, resources, output.volume, checkpoint.volume, nodePool, network.efa, cleanPodPolicy, "
        "ttlSecondsAfterFinished, queue, template, nodeOverrides, sagemaker"
    )
    assert notes({"spares": 1, "failurePolicy": {}}) == ("ignored here, because they are for a cluster: spares",)
    assert notes({**ALL, "network": {"efa": "None"}}) == (
        f"ignored here, because they are for a cluster: {everything}",
    )


def test_the_users_own_folder_for_snapshots_stands_in_for_the_clusters() -> None:
    assert notes({"checkpoint": {"volume": CLAIM}}, replace(OPTIONS, checkpoint=Path("/c"))) == ()


def test_a_suspended_job_runs_here() -> None:
    assert notes({"suspend": True}) == ("suspend: true is ignored here: the job runs",)


def test_a_field_is_used_here_or_named() -> None:
    fields = [field.alias or name for name, field in Spec.model_fields.items()]
    assert sorted(fields) == sorted((*USED_HERE, *ALL, "spares"))
