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
from muster_dev.pythons import OLDEST, list_agent_pythons

FOLDER = "training/muster_worker"
PACKAGE = "muster_worker"
USER_MODULE = "sitecustomize"  # the hook also imports this module of the user
VERMIN_OPTIONS = ("-q", "-t=3.8-", "--no-tips", "--violations", FOLDER)

LOAD_SCRIPT = """
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


def list_sources() -> Iterator[Path]:
    """List the files of the agent."""
    yield from sorted((ROOT / FOLDER).rglob("*.py"))


def find_foreign_imports() -> Sequence[str]:
    """Return a message for each import that is neither from the standard library nor from the agent itself."""
    allowed = sys.stdlib_module_names | {PACKAGE, USER_MODULE}
    return [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in list_sources()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in list_imports(node)
        if name.partition(".")[0] not in allowed
    ]


def list_imports(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports by an absolute name."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    return []


def describe_oldest_python() -> str:
    """Return the oldest Python on this machine, with a note if it isn't the oldest supported one."""
    version, python = next(list_agent_pythons())
    is_oldest = version == f"{OLDEST[0]}.{OLDEST[1]}"
    return f"Python {version} ({python})" + ("" if is_oldest else "; NOT TRIED on 3.8, which is not here")


def check_oldest_python() -> Sequence[str]:
    """Compile and import every module of the agent with the oldest Python on this machine."""
    _, python = next(list_agent_pythons())
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / FOLDER, Path(folder) / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
        command = [python, "-I", "-W", "error", "-c", LOAD_SCRIPT, folder]
        completed = subprocess.run(command, check=False, capture_output=True, text=True, env={"PATH": os.defpath})
    return [] if completed.returncode == 0 else [(completed.stdout + completed.stderr).strip()]
