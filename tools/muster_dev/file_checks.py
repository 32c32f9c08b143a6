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
LIMITED_FOLDERS = ("operator", "training", "tools")

# The brackets keep the patterns from matching this file.
FORBIDDEN_PATTERNS = {
    "a machine's path": re.compile(r"(?<![\w.}-])/(?:work(?![\w-])|root/)"),
    "a folder outside the tree": re.compile(r"\.\./share[d]"),
    "a registry's host": re.compile(r"pypi\.or[g]|pythonhosted\.or[g]|download\.pytorch\.or[g]"),
}


def list_files() -> Iterator[Path]:
    """Yield the files of the checkout: tracked files, and new files that git doesn't ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    for name in sorted(set(names.split("\0")) - {""}):
        if (ROOT / name).is_file():
            yield ROOT / name


def find_long_code() -> Sequence[str]:
    """Return a message for each module and function above the limits."""
    problems = []
    for file in list_files():
        name = file.relative_to(ROOT)
        if file.suffix != ".py" or name.parts[0] not in LIMITED_FOLDERS:
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


def find_forbidden_texts() -> Sequence[str]:
    """Return a message for each line with a path of a machine or the host of a registry."""
    problems = []
    for file in list_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            problems += [
                f"{file.relative_to(ROOT)}:{number}: {description}: {line.strip()[:120]}"
                for description, pattern in FORBIDDEN_PATTERNS.items()
                if pattern.search(line)
            ]
    return problems
