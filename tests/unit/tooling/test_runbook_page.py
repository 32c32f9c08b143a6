"""docs/runbook.md has each alert, each condition with each of its reasons, and each Event, and no others."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from muster.api.status.status import Condition, Status
from muster.controller.metrics.definitions import METRICS
from muster.core.outcome import SUCCEEDED
from muster.core.status import conditions
from muster_dev.paths import ROOT

SOURCES = ROOT / "operator"
PAGE = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
RULES = yaml.safe_load((ROOT / "charts" / "muster" / "alerts" / "muster.yaml").read_text(encoding="utf-8"))
ALERTS: list[str] = [rule["alert"] for rule in RULES["groups"][0]["rules"]]
CAMEL_CASE = re.compile(r"[A-Z]\w*[a-z]\w*")
PAIR = "tuple[str, str]"
FINAL_CONDITIONS = ("Complete", "Failed")
"""The conditions that one function builds, which gets the type as an argument."""


def words_after_colon(text: str) -> list[str]:
    """Return the words of a field's description that lists values: "The phase: Pending, Queued or Failed."."""
    return re.findall(CAMEL_CASE, text.partition(":")[2])


TYPES = words_after_colon(Condition.model_fields["type"].description or "")
PHASES = words_after_colon(Status.model_fields["phase"].description or "")


def sections(heading: str) -> dict[str, str]:
    """Return the text of each section below a heading of the page, by its title."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    titles = re.split(r"^### (\w+)$", part, flags=re.MULTILINE)
    return dict(zip(titles[1::2], titles[2::2], strict=True))


def rows(text: str) -> list[list[str]]:
    """Return the cells of the rows of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


@cache
def parse_sources() -> tuple[tuple[Path, ast.Module], ...]:
    files = sorted((SOURCES / "muster" / "core" / "status").rglob("*.py"))
    return tuple((path, ast.parse(path.read_text(encoding="utf-8"))) for path in files)


def load(path: Path) -> ModuleType:
    return import_module(".".join(path.relative_to(SOURCES).with_suffix("").parts))


def calls(function: str) -> Iterator[tuple[ModuleType, ast.Call]]:
    """Yield the calls of a function or a class in the modules that compute the status."""
    for path, tree in parse_sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
                yield load(path), node


def resolve(module: ModuleType, node: ast.expr, argument: str = "") -> str | None:
    """Return the text of a literal or of a constant; None if it is known only at runtime. `argument` fills in text."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        value = getattr(module, node.id, None)
        return value if isinstance(value, str) else None
    if isinstance(node, ast.JoinedStr) and argument:
        return "".join(resolve(module, part, argument) or argument for part in node.values)
    return None


def conditions_of_the_code() -> set[tuple[str, str, str]]:
    """Return the type, the status and the reason of each condition whose reason is a constant."""
    found = set()
    for module, call in calls("ConditionState"):
        constant = resolve(module, call.args[0])
        for kind in FINAL_CONDITIONS if constant is None else (constant,):
            status, reason = resolve(module, call.args[1]), resolve(module, call.args[2], kind)
            if status is not None and reason is not None:
                found.add((kind, status, reason))
    return found | {("Stalled", "False", reason) for reason in reasons_while_not_stalled()}


def reasons_while_not_stalled() -> Iterator[str]:
    """Yield the reasons in the pairs that functions return for `ConditionState("Stalled", False, *pair)`."""
    tree = ast.parse(Path(conditions.__file__).read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and ast.unparse(function.returns or ast.Constant("")) == PAIR:
            pairs = [node for node in ast.walk(function) if isinstance(node, ast.Tuple) and len(node.elts) == 2]
            words = (resolve(conditions, pair.elts[0]) for pair in pairs)
            yield from (word for word in words if word is not None and CAMEL_CASE.fullmatch(word))


def test_the_page_has_each_alert_with_all_its_parts() -> None:
    parts = sections("Alerts")
    assert list(parts) == ALERTS
    for alert, text in parts.items():
        assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Meaning", "Causes", "Do"], alert
        assert "```sh\n" in text, alert


def test_the_page_has_each_condition() -> None:
    assert list(sections("Conditions")) == TYPES
    assert {kind for kind, _, _ in conditions_of_the_code()} <= {*TYPES}


@pytest.mark.parametrize("kind", TYPES)
def test_a_condition_has_each_of_its_reasons_and_no_others(kind: str) -> None:
    table = rows(sections("Conditions")[kind])
    assert {cells[0] for cells in table} == {"True", "False"}
    assert all(len(cells) == 4 and all(cells) for cells in table)
    on_page = {(cells[0], cells[1].strip("`")) for cells in table if cells[1].startswith("`")}
    in_code = {(status, reason) for each, status, reason in conditions_of_the_code() if each == kind}
    if kind == "Running":
        in_code = {(str(phase == "Running"), phase) for phase in PHASES}
    if kind == "Complete":
        in_code |= {("True", SUCCEEDED)}
    assert on_page == in_code


def test_the_page_has_each_event_and_no_others() -> None:
    found: dict[str, set[str]] = {}
    for module, call in calls("JobEvent"):
        reason = resolve(module, call.args[1])
        kinds = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
        if reason is not None:
            found.setdefault(reason, set()).update(str(kind) for kind in kinds if kind in {"Normal", "Warning"})
    table = rows(PAGE.partition("\n## Events\n")[2])
    assert all(len(cells) == 4 and all(cells) for cells in table)
    on_page = {cells[0].strip("`"): set(cells[1].split(", ")) for cells in table if cells[0].startswith("`")}
    assert on_page == found


def test_the_queries_on_the_page_are_of_metrics_that_exist() -> None:
    names = set(re.findall(r"\bmuster_[a-z_]+", PAGE))
    assert names
    assert names <= {metric.name for metric in METRICS}
