"""Failures are listed at the end of a run, flaky ones separately."""

from pathlib import Path

import pytest

from outcomes import Outcome
from problems import PROBLEMS_FILE, Problem, close
from side_by_side import Part, Ran, run, run_together, sorted_out

TESTS = """
import pytest

def test_good():
    pass

def test_broken():
    assert 1 + 1 == 3, "sums"

@pytest.fixture
def outer():
    try:
        raise ValueError("the cause")
    except ValueError as cause:
        raise RuntimeError("what came of it") from cause

def test_without_its_fixture(outer):
    pass
"""


def test_a_run_finds_each_failure_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --disable-plugin-autoload")
    file = tmp_path / "test_some.py"
    file.write_text(TESTS)
    found = run(Part((file,)), [f"--rootdir={tmp_path}"])
    assert [problem.name for problem in found] == [
        "test_some.py::test_broken",
        "test_some.py::test_without_its_fixture (at setup)",
    ]
    assert found[0].error[0] == "AssertionError: sums"
    assert found[1].error == ("ValueError: the cause", "RuntimeError: what came of it")


def test_arguments_that_name_tests_run_only_these(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --disable-plugin-autoload")
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_some.py").write_text(TESTS)
    parts = [Part((tmp_path / "one",)), Part((tmp_path / "other",))]
    named = f"{tmp_path}/other/test_some.py::test_broken"
    found = run_together(parts, [f"--rootdir={tmp_path}", named])
    assert [problem.name for problem in found] == ["other/test_some.py::test_broken"]
    assert len(run_together(parts, [f"--rootdir={tmp_path}"])) == 4


def test_a_run_that_ends_before_its_tests_is_a_problem(tmp_path: Path) -> None:
    (found,) = run(Part((tmp_path / "nowhere",)), [])
    assert "exit code 4" in found.error[0]


def test_what_passes_alone_is_flaky_and_all_else_has_failed() -> None:
    names = ("broken", "flaky", "error (at setup)", "not run again")
    beside = Ran(1, [Outcome(name, passed=False, error=("beside",)) for name in names])
    again = [Outcome("broken", passed=False, error=("alone",)), Outcome("flaky", passed=True)]
    alone = Ran(1, [*again, Outcome("error", passed=True)])
    assert sorted_out(beside, alone) == [
        Problem("broken", ("alone",)),
        Problem("flaky", ("beside",), flaky=True),
        Problem("error (at setup)", ("beside",), flaky=True),
        Problem("not run again", ("beside",)),
    ]


def test_a_test_that_passes_and_cannot_be_torn_down_alone_has_failed() -> None:
    beside = Ran(1, [Outcome("test", passed=False, error=("beside",))])
    alone = Ran(1, [Outcome("test", passed=True), Outcome("test (at teardown)", passed=False, error=("alone",))])
    assert sorted_out(beside, alone) == [Problem("test (at teardown)", ("alone",))]


def flaky(name: str) -> Problem:
    return Problem(name, ("late",), flaky=True)


@pytest.mark.parametrize(
    ("problems", "code", "said"),
    [
        ([], 0, "make test: all is well"),
        ([flaky("a"), flaky("b")], 0, "make test: passed: 0 FAILED, 2 FLAKY"),
        ([flaky("a"), flaky("b"), flaky("c")], 1, "make test: failed: 0 FAILED, 3 FLAKY; 3 flaky tests fail a run"),
        ([flaky("t.py::a"), flaky("t.py::b"), flaky("t.py::c")], 0, "make test: passed: 0 FAILED, 1 FLAKY"),
        ([Problem("a", ("broken",))], 1, "make test: failed: 1 FAILED, 0 FLAKY"),
    ],
)
def test_three_flaky_tests_or_one_failure_fail_a_run(
    problems: list[Problem], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PROBLEMS_FILE, raising=False)  # the list of the run of which this test is a part
    assert close("make test", problems) == code
    assert capsys.readouterr().out.splitlines()[-1] == said


def test_lists_of_several_commands_come_together_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "problems"
    monkeypatch.setenv(PROBLEMS_FILE, str(file))
    close("make test", [])
    close("make test-cluster", [flaky("tests/a.py::test_b")])
    close("make test-long", [Problem("tests/c.py::test_d", ("AssertionError", "assert 1 == 2"))])
    assert file.read_text().splitlines() == [
        "FLAKY  tests/a.py::test_b",
        "    late",
        "make test-cluster: passed: 0 FAILED, 1 FLAKY",
        "FAILED tests/c.py::test_d",
        "    AssertionError",
        "    assert 1 == 2",
        "make test-long: failed: 1 FAILED, 0 FLAKY",
    ]
