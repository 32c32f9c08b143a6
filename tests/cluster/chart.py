"""The chart without a cluster: helm's checks, and the rendered objects."""

import json
import subprocess
import tempfile
from typing import Any

import yaml

from cluster import programs
from cluster.helm import CHART, Values
from cluster.programs import KUBERNETES

NAMESPACE = "muster-system"
# Without a cluster helm assumes an old Kubernetes version.
KUBE_VERSION = f"--kube-version={KUBERNETES}"


def render(values: Values) -> list[dict[str, Any]]:
    """Render the objects of the chart. Raises AssertionError with helm's message."""
    return documents(helm(["template", "muster", str(CHART), f"--namespace={NAMESPACE}", KUBE_VERSION], values))


def documents(text: str) -> list[dict[str, Any]]:
    """Parse the objects in helm's output."""
    return [document for document in yaml.safe_load_all(text) if document]


def lint(values: Values) -> str:
    """Run helm's strict lint. Raises AssertionError if it fails."""
    return helm(["lint", str(CHART), "--strict"], values)


def helm(command: list[str], values: Values) -> str:
    """Run helm with values; return its output."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        line = [str(programs.find("helm")), *command, f"--values={file.name}"]
        done = subprocess.run(line, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def one(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    """Return the only object of a kind, or the one with this name."""
    [found] = [each for each in objects if each["kind"] == kind and name in {"", each["metadata"]["name"]}]
    return found
