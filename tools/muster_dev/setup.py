"""`make setup`: the environment in .venv, from the hashed lock. Does nothing, quickly, when nothing has changed."""

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

from muster_dev import borrow_torch, fetch_uv
from muster_dev.borrow_torch import Torch
from muster_dev.lock import split
from muster_dev.places import BIN, PYPROJECT, PYTHON, REQUIREMENTS, ROOT, VENV, cache
from muster_dev.say import GiveUp, say

STAMP = VENV / "muster-setup.json"
TORCH_GB = 5.4  # unpacked, torch 2.15 with its CUDA libraries on x86-64 [measured]


def main(_: Sequence[str]) -> int:
    """Bring .venv up to date; the exit code."""
    begun = time.monotonic()
    try:
        with one_at_a_time():
            if is_current():
                say("nothing to do, .venv is up to date")
                return 0
            build()
    except GiveUp as problem:
        print(f"setup: {problem}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as problem:
        command = " ".join(str(part) for part in problem.cmd)
        print(f"setup: this command failed, its reason is above: {command}", file=sys.stderr)
        return 1
    say(f"done in {time.monotonic() - begun:.0f} s; the command is {BIN / 'muster'}")
    return 0


def build() -> None:
    """Make the environment, step by step, and stamp it when it is whole."""
    say(f"making .venv with {base_python()} (Python {sys.version.split()[0]}); downloads are kept in {cache()}")
    STAMP.unlink(missing_ok=True)
    uv = fetch_uv.uv()
    make_venv(uv)
    torch = choose_torch()
    parts = ["base.txt", "cluster.txt", "aws.txt", "build.txt", "dev.txt"]
    if not torch:
        parts.append("torch.txt")
    borrow_torch.forget()
    install(uv, parts)
    if torch:
        borrow_torch.write(torch)
        if problem := borrow_torch.problem():
            say(f"that torch does not work here ({problem})")
            borrow_torch.forget()
            torch = None
            say_fetching()
            install(uv, [*parts, "torch.txt"])
    run_uv(uv, "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    STAMP.write_text(json.dumps({"inputs": inputs(), "borrowed": torch.folders if torch else []}), encoding="utf-8")


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two makes in the same checkout: the second waits for the first, and then finds its work done."""
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another make in this folder")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def is_current() -> bool:
    """Whether .venv was made whole from these very files, and what it borrows is still there."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    borrowed = Torch("", tuple(stamp["borrowed"])) if stamp["borrowed"] else None
    return stamp["inputs"] == inputs() and PYTHON.exists() and (borrowed is None or borrowed.there)


def inputs() -> str:
    """A digest of all that decides what is in .venv, and of where it is: its scripts name their own path."""
    digest = hashlib.sha256(str(VENV).encode())
    for file in [PYPROJECT, *sorted(REQUIREMENTS.glob("*.txt")), *sorted(Path(__file__).parent.glob("*.py"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def base_python() -> str:
    """The Python to build on: the one that runs this, or, when .venv itself does (it is activated), the one below."""
    below: str = getattr(sys, "_base_executable", sys.executable)
    return below if Path(sys.prefix) == VENV else sys.executable


def make_venv(uv: Path) -> None:
    """An environment of this Python's version; one that is there and works is kept."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    probe = [str(PYTHON), "-c", f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"]
    if PYTHON.exists() and fetch_uv.works(probe):
        return
    run_uv(uv, "venv", "--quiet", "--clear", "--no-project", "--python", base_python(), str(VENV))


def choose_torch() -> Torch | None:
    """The torch to borrow; None when one has to be fetched, which is said with what it costs."""
    torch = borrow_torch.find(base_python())
    least = borrow_torch.minimum()
    needed = ".".join(str(part) for part in least)
    if torch is None:
        say(f"torch is not importable from {base_python()}")
    elif borrow_torch.release(torch.version) < least:
        say(f"torch {torch.version} is older than the {needed} that the examples need")
    else:
        say(f"using torch {torch.version} from {torch.folders[0]}: nothing to fetch")
        return torch
    say_fetching()
    return None


def say_fetching() -> None:
    """Announce the large download. Raises `GiveUp` when the disk hasn't the room for it."""
    say(f"fetching torch: about 3 GB to download unless it is in the cache, {TORCH_GB} GB installed")
    say("(to use a torch that you have: make setup PYTHON=/path/of/its/python)")
    free = shutil.disk_usage(cache()).free / 1e9
    if free < TORCH_GB + 1:
        raise GiveUp(
            f"{cache()} has {free:.1f} GB free, torch needs {TORCH_GB + 1:.0f}: make room, or set XDG_CACHE_HOME"
        )


def install(uv: Path, parts: Sequence[str]) -> None:
    """Put exactly the packages of these lock files into .venv; every file is checked against its hash."""
    files = [REQUIREMENTS / part for part in parts]
    count = sum(len(split(file.read_text(encoding="utf-8"))) for file in files)
    say(f"installing {count} packages, each checked by hash: requirements/{', '.join(parts)}")
    run_uv(uv, "pip", "sync", "--require-hashes", "--quiet", *map(str, files))


def run_uv(uv: Path, *arguments: str) -> None:
    """uv on .venv. Raises `CalledProcessError`; uv has said why."""
    environment = {**fetch_uv.environment(), "VIRTUAL_ENV": str(VENV)}
    environment.pop("CONDA_PREFIX", None)
    subprocess.run([uv, *arguments], check=True, env=environment, cwd=ROOT)
