"""The example with Transformers' Trainer on the cluster: its script is unchanged, and the status has its progress."""

import datetime as dt
import json
import time

import pytest

from cluster import torch_volume
from cluster.digits.example_job import Surroundings, example_job, put_code
from cluster.helm import Helm
from cluster.installation import Installer
from cluster.shared import Cluster, Kubectl
from support.progress_samples import Sample, check_samples, find_transformers

NAME = "transformers"
PATIENCE_SECONDS = 600.0
COLUMNS = ["NAME", "BACKEND", "PHASE", "NODES", "RANKS", "STEP", "RESTARTS", "AGE", "PERCENT", "REMAINING"]


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(900)
def test_an_unchanged_trainer_script_shows_its_progress(
    cluster: Cluster, installer: Installer, surroundings: Surroundings
) -> None:
    kubectl = Kubectl(cluster.kubeconfig)
    namespace = installer.provide(kubectl, Helm(cluster.kubeconfig)).namespace
    inside, job = f"--namespace={namespace}", f"dtj/{NAME}"
    packages = torch_volume.of((find_transformers(), *torch_volume.folders()))
    document = example_job(NAME, Surroundings(packages, surroundings.data))
    document["spec"]["env"].append({"name": "HF_HUB_OFFLINE", "value": "1"})
    put_code(kubectl, namespace, NAME)
    try:
        kubectl("apply", "-f", "-", inside, stdin=json.dumps(document))
        samples = follow(kubectl, job, inside)
        assert kubectl("get", job, inside, "--output=wide").split()[: len(COLUMNS)] == COLUMNS
        log = kubectl("logs", f"{NAME}-0-0", "--container=trainer", "--timestamps", inside)
        first_line = next(line for line in log.splitlines() if "'loss':" in line)
        check_samples(samples, dt.datetime.fromisoformat(first_line.split(" ")[0]).timestamp())
    finally:
        kubectl("delete", job, inside, "--ignore-not-found")
        kubectl("delete", "configmap", f"{NAME}-code", inside)


def follow(kubectl: Kubectl, job: str, inside: str) -> list[Sample]:
    """Return the progress in the status until the job has ended."""
    samples: list[Sample] = []
    until = time.time() + PATIENCE_SECONDS
    while time.time() < until:
        status = json.loads(kubectl("get", job, inside, "--output=json")).get("status", {})
        progress = status.get("progress", {})
        samples.append(Sample(time.time(), progress.get("percent"), progress.get("estimatedRemainingSeconds")))
        if "completionTime" in status:
            assert status["phase"] == "Succeeded", status["message"]
            return samples
        time.sleep(0.5)
    raise AssertionError(f"the job did not end within {PATIENCE_SECONDS:.0f} s")
