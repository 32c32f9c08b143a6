"""Makes mutants of the source: small faults, which a test must notice. `make mutants` counts how many the tests find.

tests/mutant_run.py runs the tests on them.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

AREAS = {
    "core": "operator/muster/core",
    "render": "operator/muster/render",
    "api/validation": "operator/muster/api/validation",
    "muster_worker": "training/muster_worker",
}
"""The folders of the areas that are measured."""

COMPARISONS: Mapping[type[ast.cmpop], Sequence[type[ast.cmpop]]] = {
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min"}

MARK = "__muster_line_is_executed__"
"""The builtin function that `mark_lines` lets the source call."""

NO_CODE = frozenset({"annotation", "returns", "format_spec", "type_comment"})
"""Fields of syntax nodes without behaviour of their own."""


@dataclass(frozen=True)
class Mutant:
    """One fault in one statement of a function."""

    area: str
    path: str
    number: int
    """Its place among all mutants of the file."""
    lines: range
    """The lines of the statement, for a compound statement those of its head."""
    function: str
    operator: str
    text: str
    repetition: int
    """Tells mutants apart whose other fields are the same."""

    @property
    def identity(self) -> str:
        """Name the mutant without line numbers, so that it has the same name when other lines of its file change."""
        return f"{self.path}:{self.function}: {self.operator} [{self.repetition}]: {self.text}"


@dataclass(frozen=True)
class _Scope:
    """Where a syntax node is."""

    prefix: str = ""
    """What the qualified names of functions begin with there."""
    function: str = ""
    """The innermost function; empty outside of functions."""
    lines: range = range(0)


@dataclass(frozen=True)
class _Place:
    """A syntax node in a function, with what replaces it in its parent."""

    node: ast.AST
    replace: Callable[[ast.AST], None]
    scope: _Scope


def choose_sample(root: Path, count: int) -> Sequence[Mutant]:
    """Choose so many mutants of each area.

    The choice depends on the hashes of the mutants' names: two versions of the source have nearly the same sample. The
    areas are mixed, so that a run that is interrupted has some of each.
    """
    samples: list[Sequence[Mutant]] = []
    for area, folder in AREAS.items():
        found: list[Mutant] = []
        for file in sorted((root / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            found.extend(find_mutants(text, area=area, path=str(file.relative_to(root))))
        samples.append(sorted(found, key=_hash)[:count])
    return [mutant for mixed in zip_longest(*samples) for mutant in mixed if mutant is not None]


def _hash(mutant: Mutant) -> bytes:
    return hashlib.sha256(mutant.identity.encode()).digest()


def find_mutants(text: str, *, area: str, path: str) -> Sequence[Mutant]:
    """Find all mutants of a module."""
    lines = text.splitlines()
    repetitions: Counter[tuple[str, str, str]] = Counter()
    mutants = []
    for number, (place, operator, _) in enumerate(_list_changes(ast.parse(text))):
        line = lines[place.scope.lines.start - 1].strip()
        key = (place.scope.function, operator, line)
        mutants.append(
            Mutant(area, path, number, place.scope.lines, place.scope.function, operator, line, repetitions[key])
        )
        repetitions[key] += 1
    return mutants


def mutate(text: str, number: int) -> ast.Module:
    """Return the module's syntax tree with one of its mutants."""
    tree = ast.parse(text)
    place, _, new = list(_list_changes(tree))[number]
    place.replace(ast.copy_location(new, place.node))
    return ast.fix_missing_locations(tree)


def mark_lines(text: str, path: str) -> ast.Module:
    """Return the module's syntax tree with a call of `MARK` before each statement of its functions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            continue
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                lines = [node.lineno] if isinstance(node, ast.ExceptHandler) else []
                value[:] = _mark_statements(value, path, lines)
    return ast.fix_missing_locations(tree)


def _mark_statements(statements: Sequence[ast.stmt], path: str, lines: Sequence[int]) -> Iterator[ast.stmt]:
    """Yield statements with marks before them, in their own lines. `lines` are those to mark before all of them."""
    for statement in statements:
        if _is_docstring(statement):
            yield statement
            continue
        cases = [case.pattern.lineno for case in statement.cases] if isinstance(statement, ast.Match) else []
        for line in [*lines, statement.lineno, *cases]:
            call = ast.Call(ast.Name(MARK, ast.Load()), [ast.Constant(name_line(path, line))], [])
            yield ast.copy_location(ast.Expr(call), statement)
        lines = ()
        yield statement


def name_line(path: str, line: int) -> str:
    """Name a line as the calls of `MARK` do."""
    return f"{path}:{line}"


def _list_changes(tree: ast.Module) -> Iterator[tuple[_Place, str, ast.AST]]:
    """Yield each change: its place, the name of the mutation operator, and the new node."""
    for place in list(_list_places(tree, _Scope())):
        for operator, new in _list_new_nodes(place.node):
            yield place, operator, new


def _list_places(parent: ast.AST, scope: _Scope) -> Iterator[_Place]:
    """Yield the nodes below a node that are in the body of a function."""
    in_body = scope
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
        name = scope.prefix + parent.name
        in_body = replace(scope, prefix=f"{name}.<locals>.", function=name)
    elif isinstance(parent, ast.ClassDef):
        in_body = replace(scope, prefix=f"{scope.prefix}{parent.name}.")
    for field, value in ast.iter_fields(parent):
        if field in NO_CODE:
            continue
        child_scope = in_body if field == "body" else scope
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _is_docstring(child):
                continue
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                child_scope = replace(child_scope, lines=_find_lines(child))
            if child_scope.function:
                put = partial(value.__setitem__, index) if isinstance(value, list) else partial(setattr, parent, field)
                yield _Place(child, put, child_scope)
            yield from _list_places(child, child_scope)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _find_lines(node: ast.stmt | ast.ExceptHandler | ast.match_case) -> range:
    """Return the lines of a statement, without those of statements in it."""
    start = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
    body: Sequence[ast.AST] = getattr(node, "body", None) or getattr(node, "cases", [])
    if not body:
        return range(start, (getattr(node, "end_lineno", None) or start) + 1)
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    return range(start, max(start + 1, getattr(first, "lineno", start)))


def _list_new_nodes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what may replace a node, with the name of the mutation operator."""
    if isinstance(node, ast.expr):
        yield from _list_new_expressions(node)
    elif isinstance(node, ast.stmt):
        yield from _list_new_statements(node)
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "no filter", ast.comprehension(node.target, node.iter, [], node.is_async)


def _list_new_expressions(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Constant():
            for value in _list_new_values(node.value):
                yield f"{node.value!r:.20} becomes {value!r:.20}", ast.Constant(value)
        case ast.Compare(left, [comparison], comparators):
            for new in COMPARISONS[type(comparison)]:
                yield f"{type(comparison).__name__} becomes {new.__name__}", ast.Compare(left, [new()], comparators)
        case ast.BoolOp(operation, values):
            new_operation = ast.Or() if isinstance(operation, ast.And) else ast.And()
            yield (
                f"{type(operation).__name__} becomes {type(new_operation).__name__}",
                ast.BoolOp(new_operation, values),
            )
        case ast.UnaryOp(ast.Not(), operand):
            yield "no not", operand
        case ast.BinOp(left, operator, right) if type(operator) in ARITHMETIC:
            new_operator = ARITHMETIC[type(operator)]
            yield f"{type(operator).__name__} becomes {new_operator.__name__}", ast.BinOp(left, new_operator(), right)
        case ast.IfExp(_, body, orelse):
            yield "always if", body
            yield "always else", orelse
        case ast.Call(ast.Name(name), args, keywords) if name in FUNCTIONS:
            yield f"{name} becomes {FUNCTIONS[name]}", ast.Call(ast.Name(FUNCTIONS[name], ast.Load()), args, keywords)


def _list_new_values(value: object) -> Sequence[float | str]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value + 1]
    if isinstance(value, str):
        return [value + "~"]
    return []


def _list_new_statements(node: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    match node:
        case ast.If(_, body, orelse):
            yield "always if", ast.If(ast.Constant(value=True), body, orelse)
            yield "never if", ast.If(ast.Constant(value=False), body, orelse)
        case ast.While(_, body, orelse):
            yield "never while", ast.While(ast.Constant(value=False), body, orelse)
        case ast.Return(value) if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            yield "return None", ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await()) | ast.Raise() | ast.AugAssign() | ast.Delete() | ast.Continue():
            yield f"no {type(node).__name__.lower()}", ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield "no assign", ast.Pass()
        case ast.Break():
            yield "break becomes continue", ast.Continue()
