"""The messages of commands without permission or without a connection."""

import json
from pathlib import Path

import pytest

from cluster.cli.told_jobs import NAME, ToldJobs
from cluster.muster_command import Muster
from cluster.operator.operator_process import read_config
from cluster.shared import Kubectl
from muster.cli.jobs.api_problems import explain_api_error
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Kind


def config_of(kubectl: Kubectl, folder: Path, token: str, **cluster: object) -> Path:
    config = json.loads(read_config(kubectl.kubeconfig))
    config["users"] = [{"name": "somebody", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "somebody"
    config["clusters"][0]["cluster"] |= cluster
    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def test_with_a_token_that_nobody_knows(kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    done = Muster(config_of(kubectl, tmp_path, "forged"), namespace)("ranks", NAME)
    assert done.returncode == 2
    assert "the cluster doesn't accept your credentials" in done.stderr


def test_a_cluster_that_does_not_answer(kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    kubeconfig = config_of(kubectl, tmp_path, "any", server="https://127.0.0.1:1")
    done = Muster(kubeconfig, namespace)("wait", NAME)
    assert done.returncode == 2
    assert done.stderr.startswith("muster: the cluster doesn't answer: no answer from https://127.0.0.1:1")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("group", "version"), [("nosuch.muster.dev", "v1"), ("muster.dev", "v1alpha1")])
async def test_a_cluster_without_the_crd(kubectl: Kubectl, told: ToldJobs, group: str, version: str) -> None:
    del told  # the job's CRD, and a resource of a group that exists
    client = await Client.connect(str(kubectl.kubeconfig))
    try:
        with pytest.raises(ApiError) as raised:
            await client.get(Kind(group, version, "nosuchthings", "NoSuchThing"), "default", NAME)
    finally:
        await client.close()
    assert "the cluster has no DistributedTrainingJobs" in explain_api_error(raised.value, "default", NAME)
