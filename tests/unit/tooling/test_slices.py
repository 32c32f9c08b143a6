"""The long tests run in slices, of which each run of continuous integration takes one."""

from pathlib import Path

import pytest

from side_by_side import Part, run
from slices import OTHER_SECONDS, SECONDS, SLICE, choose_files, find_seconds, parse_slice

ROOT = Path(__file__).resolve().parents[3]


def test_each_file_is_in_one_slice_and_slices_are_of_similar_length() -> None:
    files = [*SECONDS, *(f"tests/unit/test_{number}.py" for number in range(20))]
    slices = [choose_files(files, number, 4) for number in range(1, 5)]
    assert sorted(file for chosen in slices for file in chosen) == sorted(files)
    lengths = [sum(map(find_seconds, chosen)) for chosen in slices]
    assert max(lengths) - min(lengths) <= max([OTHER_SECONDS, *SECONDS.values()])


def test_the_times_are_of_files_that_exist() -> None:
    assert [file for file in SECONDS if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("text", ["", "2", "0/6", "7/6", "a/b", "1/2/3"])
def test_a_wrong_slice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected NUMBER/COUNT"):
        parse_slice(text)


def test_all_slices_together_run_all_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --disable-plugin-autoload")
    for number in range(4):
        (tmp_path / f"test_{number}.py").write_text("def test_broken(): raise ValueError")
    found = []
    for number in (1, 2, 3):
        monkeypatch.setenv(SLICE, f"{number}/3")
        # A test that runs once more alone is in the slice of the first run.
        found += run(Part((tmp_path,)), [f"--rootdir={tmp_path}"])
    assert sorted(problem.name for problem in found) == [f"test_{number}.py::test_broken" for number in range(4)]
    assert not any(problem.flaky for problem in found)
