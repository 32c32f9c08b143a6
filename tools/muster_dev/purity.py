"""Checks that the code of pure folders uses no I/O, clock, randomness or environment.

The import contract of pyproject.toml, which lists these folders, only checks which modules import each other. This
program checks names: `datetime.now` reads a clock, `datetime.fromisoformat` does not.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence

from muster_dev.paths import ROOT

CONTRACT = "Pure folders do no I/O and know no clock"

IMPURE_BUILTINS = frozenset({"breakpoint", "input", "open", "print"})
IMPURE_NAMES = frozenset({
    *("io.FileIO", "io.open", "io.open_code"),
    *("datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.date.today"),
    *("sys.argv", "sys.exit", "sys.path", "sys.platform", "sys.stderr", "sys.stdin", "sys.stdout"),
    *("signal.alarm", "signal.raise_signal", "signal.signal"),
    *("concurrent", "ctypes", "fcntl", "getpass", "glob", "http.client", "http.server", "importlib.import_module"),
    *("logging", "mmap", "multiprocessing", "os", "pathlib", "platform", "random", "secrets", "select", "selectors"),
    *("shutil", "socket", "ssl", "subprocess", "tempfile", "threading", "time", "urllib.request", "uuid"),
})  # fmt: skip
"""Full names. All names below them are impure, too. A package's own data (`importlib.resources`) counts as code."""


def find_violations() -> Sequence[str]:
    """Return a message for each impure name in pure folders."""
    problems = []
    for module in list_pure_folders():
        path = ROOT / "operator" / module.replace(".", "/")
        module_file = path.with_suffix(".py")
        files = [module_file] if module_file.is_file() else sorted(path.rglob("*.py"))
        if not files:
            problems.append(f"pyproject.toml: {module}, which the contract {CONTRACT!r} names, has no modules")
        for file in files:
            for line, name in find_impure_names(file.read_text(encoding="utf-8")):
                problems.append(f"{file.relative_to(ROOT)}:{line}: {name} in a pure folder")
    return problems


def list_pure_folders() -> Sequence[str]:
    """Return the packages in the import contract of pure folders."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts = tools["importlinter"]["contracts"]
    return [module for contract in contracts if contract["name"] == CONTRACT for module in contract["source_modules"]]


def find_impure_names(text: str) -> Sequence[tuple[int, str]]:
    """Find the impure names of a module. Returns their lines and names."""
    tree = ast.parse(text)
    imported: dict[str, str] = {}
    problems_by_line: set[tuple[int, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, full, full_name in _list_imported_names(node):
                imported[name] = full_name
                problems_by_line |= {(node.lineno, impure_name) for impure_name in _find_impure_prefixes(full)}
    for reference in ast.walk(tree):
        if isinstance(reference, ast.Attribute | ast.Name):
            first, dot, rest = _build_dotted_name(reference).partition(".")
            if first in imported:
                problems_by_line |= {
                    (reference.lineno, impure_name)
                    for impure_name in _find_impure_prefixes(imported[first] + dot + rest)
                }
            elif not rest and first in IMPURE_BUILTINS:
                problems_by_line.add((reference.lineno, first))
    return sorted(problems_by_line)


def _list_imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """Yield for each imported name: the name, the imported module or object, and the object that the name refers to."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            full = f"{node.module}.{alias.name}"
            yield alias.asname or alias.name, full, full
        elif alias.asname:
            yield alias.asname, alias.name, alias.name
        else:
            # `import a.b` defines the name `a`.
            first = alias.name.partition(".")[0]
            yield first, alias.name, first


def _find_impure_prefixes(name: str) -> Iterator[str]:
    """Yield the name or its parent if it is impure."""
    parts = name.split(".")
    prefixes = (".".join(parts[: count + 1]) for count in range(len(parts)))
    yield from IMPURE_NAMES.intersection(prefixes)


def _build_dotted_name(node: ast.expr) -> str:
    """Return the dotted name of an attribute or name that the code reads, such as `datetime.now`; otherwise ""."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Load) else ""
    if isinstance(node, ast.Attribute):
        above = _build_dotted_name(node.value)
        return above and f"{above}.{node.attr}"
    return ""
