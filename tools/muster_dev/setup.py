"""`make setup`: installs the environment in .venv from the hashed lock, unless it is current."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from muster_dev import fetch_uv, installed_torch
from muster_dev.installed_torch import Torch
from muster_dev.lock import split_entries
from muster_dev.messages import SetupError, print_step
from muster_dev.paths import BIN, PYPROJECT, PYTHON, REQUIREMENTS, ROOT, VENV, get_cache_folder

STAMP = VENV / "muster-setup.json"
TORCH_GB = 5.4  # unpacked, torch 2.15 with its CUDA libraries on x86-64 (measured)


def main(_: Sequence[str]) -> int:
    """Update .venv; return the exit code."""
    started = time.monotonic()
    try:
        with lock_checkout():
            if is_current():
                print_step("nothing to do, .venv is up to date")
                return 0
            build_environment()
    except SetupError as problem:
        print(f"setup: {problem}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as problem:
        command = " ".join(str(part) for part in problem.cmd)
        print(f"setup: this command failed, its reason is above: {command}", file=sys.stderr)
        return 1
    print_step(f"done in {time.monotonic() - started:.0f} s; the command is {BIN / 'muster'}")
    return 0


def build_environment() -> None:
    """Build the environment, and write its stamp at the end."""
    print_step(
        f"creating .venv with {find_base_python()} (Python {sys.version.split()[0]}); downloads are kept in "
        f"{get_cache_folder()}"
    )
    STAMP.unlink(missing_ok=True)
    uv = fetch_uv.find_uv()
    make_venv(uv)
    torch = choose_torch()
    parts = ["base.txt", "cluster.txt", "aws.txt", "build.txt", "dev.txt"]
    if not torch:
        parts.append("torch.txt")
    installed_torch.remove_pth()
    install_packages(uv, parts)
    if torch:
        installed_torch.write_pth(torch)
        if problem := installed_torch.find_problem():
            print_step(f"that torch does not work here ({problem})")
            installed_torch.remove_pth()
            torch = None
            print_download_size()
            install_packages(uv, [*parts, "torch.txt"])
    run_uv(uv, "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    STAMP.write_text(
        json.dumps({"inputs": compute_input_digest(), "borrowed": torch.folders if torch else []}), encoding="utf-8"
    )


@contextmanager
def lock_checkout() -> Iterator[None]:
    """Lock the checkout. A second make waits for the first one, and then has nothing to do."""
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print_step("waiting for another make in this folder")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def is_current() -> bool:
    """Whether .venv is complete and was made from the current files, and the borrowed torch still exists."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    borrowed = Torch("", tuple(stamp["borrowed"])) if stamp["borrowed"] else None
    return stamp["inputs"] == compute_input_digest() and PYTHON.exists() and (borrowed is None or borrowed.exists)


def compute_input_digest() -> str:
    """Return a digest of all inputs of .venv, including its path, which its scripts contain."""
    digest = hashlib.sha256(str(VENV).encode())
    for file in [PYPROJECT, *sorted(REQUIREMENTS.glob("*.txt")), *sorted(Path(__file__).parent.glob("*.py"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def find_base_python() -> str:
    """Return the Python for .venv. If the running Python is that of .venv, return the Python on which it is based."""
    below: str = getattr(sys, "_base_executable", sys.executable)
    return below if Path(sys.prefix) == VENV else sys.executable


def make_venv(uv: Path) -> None:
    """Create an environment with this Python's version, unless a working one exists."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    probe = [str(PYTHON), "-c", f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"]
    if PYTHON.exists() and fetch_uv.does_succeed(probe):
        return
    run_uv(uv, "venv", "--quiet", "--clear", "--no-project", "--python", find_base_python(), str(VENV))


def choose_torch() -> Torch | None:
    """Return the installed torch to use; None if torch has to be downloaded. Prints the reason."""
    torch = installed_torch.find_torch(find_base_python())
    minimum = installed_torch.read_minimum_version()
    needed = ".".join(str(part) for part in minimum)
    if torch is None:
        print_step(f"torch is not importable from {find_base_python()}")
    elif installed_torch.parse_version(torch.version) < minimum:
        print_step(f"torch {torch.version} is older than the {needed} that the examples need")
    else:
        print_step(f"using torch {torch.version} from {torch.folders[0]}: nothing to fetch")
        return torch
    print_download_size()
    return None


def print_download_size() -> None:
    """Announce the large download. Raises `SetupError` if the disk is too small."""
    print_step(f"fetching torch: about 3 GB to download unless it is in the cache, {TORCH_GB} GB installed")
    print_step("(to use a torch that you have: make setup PYTHON=/path/of/its/python)")
    free = shutil.disk_usage(get_cache_folder()).free / 1e9
    if free < TORCH_GB + 1:
        raise SetupError(
            f"{get_cache_folder()} has {free:.1f} GB free, torch needs {TORCH_GB + 1:.0f}: make room, or set "
            "XDG_CACHE_HOME"
        )


def install_packages(uv: Path, parts: Sequence[str]) -> None:
    """Install exactly the packages of these lock files into .venv, verified by hash."""
    files = [REQUIREMENTS / part for part in parts]
    count = sum(len(split_entries(file.read_text(encoding="utf-8"))) for file in files)
    print_step(f"installing {count} packages, each checked by hash: requirements/{', '.join(parts)}")
    run_uv(uv, "pip", "sync", "--require-hashes", "--quiet", *map(str, files))


def run_uv(uv: Path, *arguments: str) -> None:
    """Run uv for .venv. Raises `CalledProcessError`; uv prints the reason."""
    environment = {**fetch_uv.build_uv_environment(), "VIRTUAL_ENV": str(VENV)}
    environment.pop("CONDA_PREFIX", None)
    subprocess.run([uv, *arguments], check=True, env=environment, cwd=ROOT)
