"""The chart without a cluster: helm's checks, and the rendered objects."""

import json
import subprocess
import tempfile
from functools import lru_cache
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
    return documents(_render_text(json.dumps(values)))


@lru_cache
def _render_text(values: str) -> str:
    return helm(["template", "muster", str(CHART), f"--namespace={NAMESPACE}", KUBE_VERSION], json.loads(values))


def documents(text: str) -> list[dict[str, Any]]:
    """Parse the objects in helm's output. The parser in C is much faster for the CRDs."""
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]


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
