"""The faults that `make mutants` puts into the source, and how it counts what the tests find."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace

import pytest

from muster_dev.mutant_results import KILLED, NOT_APPLICABLE, NOT_COVERED, SURVIVED, Result, make_list, make_table
from muster_dev.mutants import AREAS, MARK, choose_sample, find_mutants, mark_lines, mutate
from mutant_run import LiveCode


def list_values(expression: str) -> set[str]:
    """Return what the mutants of a function return that returns this expression of a = 1 and b = 2."""
    text = f"def compute(a, b):\n    return {expression}\n"
    values: set[str] = set()
    for mutant in find_mutants(text, area="core", path="a.py"):
        names: dict[str, object] = {}
        exec(compile(mutate(text, mutant.number), "a.py", "exec"), names)  # noqa: S102 - it is the text above
        compute = names["compute"]
        assert callable(compute)
        values.add(repr(compute(1, 2)))
    return values


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("a", {"None"}),
        ("a == b", {"None", "True"}),
        ("a + b", {"None", "-1"}),
        ("a * 5", {"None", "0", "6", "4"}),
        ("a or b", {"None", "2"}),
        ("not a", {"None", "1"}),
        ("'x'", {"None", "'x~'"}),
        ("a if b else True", {"None", "1", "True"}),
        ("min(a, b)", {"None", "2"}),
        ("sum(c for c in (a, b) if c > a)", {"None", "3", "1"}),
    ],
)
def test_an_expression_has_mutants(expression: str, values: set[str]) -> None:
    assert list_values(expression) == values


MODULE = '''
LIMIT = 5  # not in a function


class Basket:
    """What is bought."""

    def add(self, item: "str" = "egg") -> bool:
        """Add it."""
        if item:
            self.items.append(item)
        elif self.is_open:
            raise ValueError
        return True
'''


def test_only_bodies_of_functions_have_mutants() -> None:
    mutants = find_mutants(MODULE, area="core", path="a.py")
    assert [(mutant.function, mutant.operator, list(mutant.lines)) for mutant in mutants] == [
        ("Basket.add", "always if", [10]),
        ("Basket.add", "never if", [10]),
        ("Basket.add", "no expr", [11]),
        ("Basket.add", "always if", [12]),
        ("Basket.add", "never if", [12]),
        ("Basket.add", "no raise", [13]),
        ("Basket.add", "return None", [14]),
        ("Basket.add", "True becomes False", [14]),
    ]


def test_a_mutant_keeps_its_name_when_other_lines_change() -> None:
    before = find_mutants(MODULE, area="core", path="a.py")
    after = find_mutants(MODULE.replace("LIMIT", "# more\nLIMIT"), area="core", path="a.py")
    assert [mutant.identity for mutant in before] == [mutant.identity for mutant in after]
    assert len({mutant.identity for mutant in before}) == len(before)


def test_a_sample_of_a_changed_tree_is_nearly_the_same(tmp_path: Path) -> None:
    file = tmp_path / AREAS["core"] / "basket.py"
    file.parent.mkdir(parents=True)
    file.write_text(MODULE)
    before = {mutant.identity for mutant in choose_sample(tmp_path, 4)}
    (file.parent / "other.py").write_text("def f():\n    return 1\n")
    after = {mutant.identity for mutant in choose_sample(tmp_path, 7)}
    assert len(before) == 4
    assert before < after


def test_executed_lines_are_marked() -> None:
    lines: list[str] = []

    names: dict[str, object] = {MARK: lines.append, "basket": SimpleNamespace(is_open=False)}
    exec(compile(mark_lines(MODULE, "a.py"), "a.py", "exec"), names)  # noqa: S102 - it is the text above
    exec("Basket.add(basket, '')", names)  # noqa: S102 - as above
    assert lines == ["a.py:10", "a.py:12", "a.py:14"]


def test_code_in_memory_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceFileLoader, "get_code", SourceFileLoader.get_code)
    text = "def outer():\n    def inner():\n        return 1\n    return inner\n\nclosure = outer()\n"
    file = tmp_path / "closure.py"
    file.write_text(text)
    specification = importlib.util.spec_from_file_location("closure", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    mutant = next(each for each in find_mutants(text, area="core", path="closure.py") if each.operator == "1 becomes 2")
    assert LiveCode(frozenset({str(file)})).replace(str(file), mutate(text, mutant.number))
    assert (module.closure(), module.outer()()) == (2, 2)


def test_results_are_counted_by_area() -> None:
    mutants = find_mutants(MODULE, area="core", path="a.py")
    outcomes = [KILLED, KILLED, SURVIVED, NOT_COVERED, NOT_APPLICABLE]
    results = [Result(mutant, outcome, "a test") for mutant, outcome in zip(mutants, outcomes, strict=False)]
    assert make_table(results).splitlines()[2] == "| core | 4 | 2 | 1 | 1 | 50.0% | 66.7% |"
    assert make_list(results).startswith("survived\ta.py:Basket.add: no expr [0]: self.items.append(item)\ta test\n")
