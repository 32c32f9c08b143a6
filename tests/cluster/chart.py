"""The chart without a cluster: what helm says of it, and what it makes of values."""

import json
import subprocess
import tempfile
from typing import Any

import yaml

from cluster import programs
from cluster.helm import CHART, Values
from cluster.programs import KUBERNETES

NAMESPACE = "muster-system"
# helm without a cluster takes a version for granted that is as old as it likes.
KUBE_VERSION = f"--kube-version={KUBERNETES}"


def render(values: Values) -> list[dict[str, Any]]:
    """The objects that would be installed. Raises AssertionError with helm's words."""
    return documents(helm(["template", "muster", str(CHART), f"--namespace={NAMESPACE}", KUBE_VERSION], values))


def documents(text: str) -> list[dict[str, Any]]:
    """The objects in what helm prints."""
    return [document for document in yaml.safe_load_all(text) if document]


def lint(values: Values) -> str:
    """What helm has to say, strictly. Raises AssertionError when that is bad."""
    return helm(["lint", str(CHART), "--strict"], values)


def helm(command: list[str], values: Values) -> str:
    """Run helm with values; what it printed."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        line = [str(programs.find("helm")), *command, f"--values={file.name}"]
        done = subprocess.run(line, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def one(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    """The object of a kind, of that name where it's given."""
    [found] = [each for each in objects if each["kind"] == kind and name in {"", each["metadata"]["name"]}]
    return found
