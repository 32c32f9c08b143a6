"""Use the torch that the machine already has: 5 GB less to fetch, and the one its driver goes with.

The environment stays its own: its packages come first, and only what it lacks (torch and what torch needs) is found in
the other Python's folders, which a .pth file appends to the end of the module path. That works for a torch of the
system, of another virtual environment and of conda alike, where `--system-site-packages` knows only the first.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muster_dev.places import BIN, PYPROJECT, PYTHON, VENV

PROBE = """
import json, os, site, sys
import torch
folders = [os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))]
folders += [f for f in sys.path if os.path.basename(f) in ("site-packages", "dist-packages") and f not in folders]
print(json.dumps({"version": torch.__version__, "folders": folders}))
"""

TRIAL = """
import numpy, torch, torch.distributed.run, torch.distributed.tensor
assert torch.distributed.is_gloo_available(), "it is built without gloo"
assert torch.from_numpy(numpy.ones(2)).sum().item() == 2
"""

TORCHRUN = """#!{python}
import sys
from torch.distributed.run import main
sys.exit(main())
"""

PTH = "muster_borrowed_torch.pth"


@dataclass(frozen=True)
class Torch:
    """A torch of another environment: its version and the folders that it and what it needs are in."""

    version: str
    folders: tuple[str, ...]

    @property
    def there(self) -> bool:
        """Whether it still is where it was."""
        return (Path(self.folders[0]) / "torch" / "__init__.py").is_file()


def find(python: str) -> Torch | None:
    """The torch that `python` imports, unless it has none or it is the one in .venv itself."""
    done = subprocess.run([python, "-c", PROBE], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    document = json.loads(done.stdout.splitlines()[-1])
    torch = Torch(document["version"], tuple(document["folders"]))
    return None if Path(torch.folders[0]).is_relative_to(VENV) else torch


def minimum() -> tuple[int, int]:
    """The oldest torch that the examples work with, from pyproject.toml's group `train`."""
    groups = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["dependency-groups"]
    [required] = [entry for entry in groups["train"] if isinstance(entry, str) and entry.startswith("torch>=")]
    return release(required.removeprefix("torch>="))


def release(version: str) -> tuple[int, int]:
    """Major and minor of a version such as 2.9.0a0+git1234."""
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def pth() -> Path:
    """Where the environment says which folders it borrows from."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return VENV / "lib" / version / "site-packages" / PTH


def write(torch: Torch) -> None:
    """Make the environment see `torch`, with a `torchrun` of its own."""
    pth().write_text("".join(f"{folder}\n" for folder in torch.folders), encoding="utf-8")
    torchrun = BIN / "torchrun"
    torchrun.write_text(TORCHRUN.format(python=PYTHON), encoding="utf-8")
    torchrun.chmod(0o755)


def forget() -> None:
    """Undo `write`."""
    if pth().is_file():
        pth().unlink()
        (BIN / "torchrun").unlink(missing_ok=True)


def problem() -> str | None:
    """Why the environment can't work with what it borrows; None when it can."""
    done = subprocess.run(trial(PYTHON), check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def trial(python: Path) -> Sequence[str]:
    """The command that tries what tests and examples need of torch."""
    return [str(python), "-c", TRIAL]
