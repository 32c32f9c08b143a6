"""The krew manifest has the fields that krew requires, and its program runs the command."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

from muster_dev.paths import ROOT

FOLDER = ROOT / "tools" / "krew"
PROGRAM = FOLDER / "kubectl-muster"


def load_manifest() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((FOLDER / "muster.yaml").read_text("utf-8"))
    return manifest


def test_the_fields_that_krew_requires() -> None:
    manifest = load_manifest()
    spec = manifest["spec"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert manifest["kind"] == "Plugin"
    # the plug-in's name is its file's name
    assert manifest["metadata"] == {"name": "muster"}
    assert spec["version"] == f"v{project['version']}"
    assert spec["homepage"] == project["urls"]["Homepage"]
    assert 0 < len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    assert spec["description"]
    assert f"pip install '{project['name']}[cluster]'" in spec["caveats"]


def test_the_platforms() -> None:
    spec = load_manifest()["spec"]
    (platform,) = spec["platforms"]
    (expression,) = platform["selector"]["matchExpressions"]
    assert expression == {"key": "os", "operator": "In", "values": ["linux", "darwin"]}
    assert platform["uri"].startswith("https://")
    assert f"/{spec['version']}/" in platform["uri"]
    assert platform["uri"].endswith((".tar.gz", ".zip"))
    assert re.fullmatch("[0-9a-f]{64}", platform["sha256"])
    assert platform["bin"] in {entry["from"] for entry in platform["files"]}
    for entry in platform["files"]:
        assert (FOLDER / entry["from"]).exists() or (ROOT / entry["from"]).exists()


def test_the_program_runs_the_command() -> None:
    assert os.access(PROGRAM, os.X_OK)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([PROGRAM, "list", "--help"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: kubectl muster list ")
