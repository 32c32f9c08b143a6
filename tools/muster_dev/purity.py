"""Checks that the code of pure folders uses no I/O, clock, randomness or environment.

The import contract of pyproject.toml, which lists these folders, only checks which modules import each other. This
check works on names: `datetime.now` is a clock, `datetime.fromisoformat` is not.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence

from muster_dev.paths import ROOT

CONTRACT = "Pure folders do no I/O and know no clock"

BUILT_IN = frozenset({"breakpoint", "input", "open", "print"})
IMPORTED = frozenset({
    *("io.FileIO", "io.open", "io.open_code"),
    *("datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.date.today"),
    *("sys.argv", "sys.exit", "sys.path", "sys.platform", "sys.stderr", "sys.stdin", "sys.stdout"),
    *("signal.alarm", "signal.raise_signal", "signal.signal"),
    *("concurrent", "ctypes", "fcntl", "getpass", "glob", "http.client", "http.server", "importlib.import_module"),
    *("logging", "mmap", "multiprocessing", "os", "pathlib", "platform", "random", "secrets", "select", "selectors"),
    *("shutil", "socket", "ssl", "subprocess", "tempfile", "threading", "time", "urllib.request", "uuid"),
})  # fmt: skip
"""Full names, each with everything below it. A package's own data (`importlib.resources`) counts as code."""


def impure() -> Sequence[str]:
    """The violations in pure folders."""
    problems = []
    for module in pure_folders():
        place = ROOT / "operator" / module.replace(".", "/")
        single = place.with_suffix(".py")
        files = [single] if single.is_file() else sorted(place.rglob("*.py"))
        if not files:
            problems.append(f"pyproject.toml: {module}, which the contract {CONTRACT!r} names, has no modules")
        for file in files:
            for line, name in impurities(file.read_text(encoding="utf-8")):
                problems.append(f"{file.relative_to(ROOT)}:{line}: {name} in a pure folder")
    return problems


def pure_folders() -> Sequence[str]:
    """The packages in the import contract of pure folders."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts = tools["importlinter"]["contracts"]
    return [module for contract in contracts if contract["name"] == CONTRACT for module in contract["source_modules"]]


def impurities(text: str) -> Sequence[tuple[int, str]]:
    """The lines of a module with impure names."""
    tree = ast.parse(text)
    imported: dict[str, str] = {}
    problems_by_line: set[tuple[int, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, full, full_name in _imports(node):
                imported[name] = full_name
                problems_by_line |= {(node.lineno, impure_name) for impure_name in _impure(full)}
    for reference in ast.walk(tree):
        if isinstance(reference, ast.Attribute | ast.Name):
            first, dot, rest = _dotted(reference).partition(".")
            if first in imported:
                problems_by_line |= {
                    (reference.lineno, impure_name) for impure_name in _impure(imported[first] + dot + rest)
                }
            elif not rest and first in BUILT_IN:
                problems_by_line.add((reference.lineno, first))
    return sorted(problems_by_line)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """For each imported name: the name, the full import, and the full name behind it."""
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


def _impure(name: str) -> Iterator[str]:
    """The name or a parent of it, if impure."""
    parts = name.split(".")
    prefixes = (".".join(parts[: count + 1]) for count in range(len(parts)))
    yield from IMPORTED.intersection(prefixes)


def _dotted(node: ast.expr) -> str:
    """The dotted name of an attribute or a name that is read, as `datetime.now`; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Load) else ""
    if isinstance(node, ast.Attribute):
        above = _dotted(node.value)
        return above and f"{above}.{node.attr}"
    return ""
