"""Makes the environment use a torch that is already installed, which needs no download and fits the GPU driver.

The environment keeps its own packages. A .pth file appends the folders of the other Python to the module path, so
Python finds torch and its dependencies there. This works with a torch of the system, of another virtual environment or
of conda; `--system-site-packages` supports only the first.
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

from muster_dev.paths import BIN, PYPROJECT, PYTHON, VENV

PROBE_SCRIPT = """
import json, os, site, sys
import torch
folders = [os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))]
folders += [f for f in sys.path if os.path.basename(f) in ("site-packages", "dist-packages") and f not in folders]
print(json.dumps({"version": torch.__version__, "folders": folders}))
"""

TEST_SCRIPT = """
import numpy, torch, torch.distributed.run, torch.distributed.tensor
assert torch.distributed.is_gloo_available(), "it is built without gloo"
assert torch.from_numpy(numpy.ones(2)).sum().item() == 2
"""

TORCHRUN_SCRIPT = """#!{python}
import sys
from torch.distributed.run import main
sys.exit(main())
"""

PTH_NAME = "muster_borrowed_torch.pth"


@dataclass(frozen=True)
class Torch:
    """A torch of another environment: its version, and the folders of it and its dependencies."""

    version: str
    folders: tuple[str, ...]

    @property
    def exists(self) -> bool:
        """Whether it is still installed."""
        return (Path(self.folders[0]) / "torch" / "__init__.py").is_file()


def find_torch(python: str) -> Torch | None:
    """Return the torch that `python` imports; None if it has no torch, or only the one in .venv."""
    completed = subprocess.run([python, "-c", PROBE_SCRIPT], check=False, capture_output=True, text=True)
    if completed.returncode != 0:
        return None
    document = json.loads(completed.stdout.splitlines()[-1])
    torch = Torch(document["version"], tuple(document["folders"]))
    return None if Path(torch.folders[0]).is_relative_to(VENV) else torch


def read_minimum_version() -> tuple[int, int]:
    """Return the oldest torch that the examples support, from the group `train` of pyproject.toml."""
    groups = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["dependency-groups"]
    [required] = [entry for entry in groups["train"] if isinstance(entry, str) and entry.startswith("torch>=")]
    return parse_version(required.removeprefix("torch>="))


def parse_version(version: str) -> tuple[int, int]:
    """Return the major and minor version of a string such as 2.9.0a0+git1234."""
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def get_pth_path() -> Path:
    """Return the path of the .pth file with the other environment's folders."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return VENV / "lib" / version / "site-packages" / PTH_NAME


def write_pth(torch: Torch) -> None:
    """Make `torch` importable in the environment, and write a `torchrun` script."""
    get_pth_path().write_text("".join(f"{folder}\n" for folder in torch.folders), encoding="utf-8")
    torchrun = BIN / "torchrun"
    torchrun.write_text(TORCHRUN_SCRIPT.format(python=PYTHON), encoding="utf-8")
    torchrun.chmod(0o755)


def remove_pth() -> None:
    """Remove the files of `write_pth`."""
    if get_pth_path().is_file():
        get_pth_path().unlink()
        (BIN / "torchrun").unlink(missing_ok=True)


def find_problem() -> str | None:
    """Return the reason why this torch doesn't work in the environment; None if it does."""
    completed = subprocess.run(build_test_command(PYTHON), check=False, capture_output=True, text=True)
    if completed.returncode == 0:
        return None
    lines = completed.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {completed.returncode}"


def build_test_command(python: Path) -> Sequence[str]:
    """Return the command that tests the parts of torch that tests and examples use."""
    return [str(python), "-c", TEST_SCRIPT]
