"""The page of reasons, which programs rely on, says for each reason what it means and what to do."""

import ast
import re
from importlib import import_module
from types import ModuleType

import pytest

from muster.api.status.status import SUSPENDED
from muster.core import outcome
from muster.core.failure import ends, problems
from muster.diagnose.kubernetes import end_problems, refusals, scheduling, start_problems
from muster.objects.aws.errors import AwsError
from muster.render.kubernetes import not_renderable
from muster_dev.paths import ROOT
from muster_worker.contract.schema import EndReason

PAGE = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
FILES_PAGE = (ROOT / "docs" / "s3-permissions.md").read_text(encoding="utf-8")
TABLES = PAGE.partition("\n## ")[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")] for line in TABLES.splitlines() if line.startswith("| `")
]
REASONS_WITH_ROWS = {reason for cells in ROWS for reason in re.findall(r"`(\w+)`", cells[0])} | {
    reason for line in FILES_PAGE.splitlines() if line.startswith("| `") for reason in re.findall(r"`(\w+)`", line)
}
NOT_BAD = {outcome.SUCCEEDED, SUSPENDED}
# A reason that no status has, because muster reports a problem with AWS only after it has happened three times.
INTERNAL = {"NotSeenYet"}
CAMEL_CASE = re.compile(r"[A-Z]\w*[a-z]\w*")


def reasons(module: ModuleType) -> set[str]:
    """Return the module's constants that are one CamelCase word."""
    result = (value for name, value in vars(module).items() if name.isupper() and not name.startswith("_"))
    return {value for value in result if isinstance(value, str) and CAMEL_CASE.fullmatch(value)}


@pytest.mark.parametrize(
    "module", [end_problems, start_problems, scheduling, refusals, not_renderable, problems, ends, outcome]
)
def test_the_page_has_every_reason(module: ModuleType) -> None:
    result = reasons(module) - NOT_BAD
    assert result
    assert result - REASONS_WITH_ROWS == set()


def test_the_page_has_the_reason_of_every_problem_that_the_code_makes() -> None:
    found = set()
    for path in (ROOT / "operator" / "muster").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\bProblem\(", text):
            continue
        names = {
            node.args[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and is_problem(node.func)
        }
        found |= {name.value for name in names if isinstance(name, ast.Constant)}
        constants = {name.id for name in names if isinstance(name, ast.Name) and name.id.isupper()}
        if constants:
            module = import_module(".".join(path.relative_to(ROOT / "operator").with_suffix("").parts))
            found |= {getattr(module, name) for name in constants}
    assert len(found) > 40
    assert found - REASONS_WITH_ROWS - INTERNAL == set()


def is_problem(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id == "Problem"


def test_every_row_says_what_to_do() -> None:
    assert [cells for cells in ROWS if len(cells) != 3 or not all(cells)] == []


def test_the_page_has_every_reason_of_aws() -> None:
    result = {kind.reason for kind in AwsError.__subclasses__()}
    assert len(result) == 9
    assert result - REASONS_WITH_ROWS == set()


def test_the_page_has_every_reason_of_an_agent() -> None:
    assert set(EndReason.ALL) - REASONS_WITH_ROWS == set()
