"""Checks that the agent's code fits the user's image: Python 3.8 or later, standard library only."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from muster_dev.paths import ROOT
from muster_dev.pythons import OLDEST, agent_pythons

FOLDER = "training/muster_worker"
OWN = "muster_worker"
CHAINED = "sitecustomize"  # the user's own module, which the hook also imports
VERMIN = ("-q", "-t=3.8-", "--no-tips", "--violations", FOLDER)

TRIAL = """
import compileall, importlib, pkgutil, sys, typing, dataclasses
sys.path.insert(0, sys.argv[1])
if not compileall.compile_dir(sys.argv[1], quiet=1):
    sys.exit(1)
import muster_worker
for found in pkgutil.walk_packages(muster_worker.__path__, "muster_worker."):
    if found.name.rpartition(".")[2] != "__main__" and ".site" not in found.name:
        importlib.import_module(found.name)
from muster_worker.contract import schema
for name, kind in vars(schema).items():
    if dataclasses.is_dataclass(kind):
        typing.get_type_hints(kind)
"""


def sources() -> Iterator[Path]:
    """The files of the agent."""
    yield from sorted((ROOT / FOLDER).rglob("*.py"))


def foreign_imports() -> Sequence[str]:
    """Imports of anything but the standard library and the agent itself."""
    allowed = sys.stdlib_module_names | {OWN, CHAINED}
    return [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sources()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in imported(node)
        if name.partition(".")[0] not in allowed
    ]


def imported(node: ast.AST) -> list[str]:
    """The absolute modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    return []


def older_python_name() -> str:
    """The Python of this check, and whether it is the oldest supported one."""
    version, python = next(agent_pythons())
    is_oldest = version == f"{OLDEST[0]}.{OLDEST[1]}"
    return f"Python {version} ({python})" + ("" if is_oldest else "; NOT TRIED on 3.8, which is not here")


def problems_on_older_python() -> Sequence[str]:
    """Compile and import every module of the agent with the oldest Python on this machine."""
    _, python = next(agent_pythons())
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / FOLDER, Path(folder) / OWN, ignore=shutil.ignore_patterns("__pycache__"))
        command = [python, "-I", "-W", "error", "-c", TRIAL, folder]
        completed = subprocess.run(command, check=False, capture_output=True, text=True, env={"PATH": os.defpath})
    return [] if completed.returncode == 0 else [(completed.stdout + completed.stderr).strip()]
