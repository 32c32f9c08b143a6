"""Checks the size of modules and functions, and forbidden texts in files."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from muster_dev.paths import ROOT

MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 40
LIMITED = ("operator", "training", "tools")

# Written so that the patterns don't match themselves.
FORBIDDEN = {
    "a machine's path": re.compile(r"(?<![\w.}-])/(?:work(?![\w-])|root/)"),
    "a folder outside the tree": re.compile(r"\.\./share[d]"),
    "a registry's host": re.compile(r"pypi\.or[g]|pythonhosted\.or[g]|download\.pytorch\.or[g]"),
}


def files() -> Iterator[Path]:
    """The tree's files: tracked ones, and new ones that git doesn't ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    for name in sorted(set(names.split("\0")) - {""}):
        if (ROOT / name).is_file():
            yield ROOT / name


def too_long() -> Sequence[str]:
    """Modules and functions above the limits."""
    problems = []
    for file in files():
        name = file.relative_to(ROOT)
        if file.suffix != ".py" or name.parts[0] not in LIMITED:
            continue
        text = file.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > MAX_MODULE_LINES:
            problems.append(f"{name}: {lines} lines, at most {MAX_MODULE_LINES}")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    problems.append(
                        f"{name}:{node.lineno}: {node.name} has {length} lines, at most {MAX_FUNCTION_LINES}"
                    )
    return problems


def forbidden_texts() -> Sequence[str]:
    """Lines with a path of a machine or the host of a registry."""
    problems = []
    for file in files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            problems += [
                f"{file.relative_to(ROOT)}:{number}: {what}: {line.strip()[:120]}"
                for what, pattern in FORBIDDEN.items()
                if pattern.search(line)
            ]
    return problems
