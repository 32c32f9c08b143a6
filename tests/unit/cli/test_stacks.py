"""The stacks that `muster stacks` finds in a pod's log."""

from muster.cli.board.latest_stacks import MAX_LINES, LatestStacks


def stacks(*lines: str) -> dict[int, list[str]]:
    latest = LatestStacks()
    for line in lines:
        latest.add(line)
    return latest.lines


def test_the_latest_stacks_of_each_rank_count() -> None:
    found = stacks(
        "[0] step 1",
        "[muster] rank 0 has completed no step for 90 s (all_reduce)",
        '[muster] rank 0 |   File "train.py", line 3 in main',
        "[muster] rank 1 has completed no step for 90 s",
        "[muster] rank 1 | no stack: the process does not answer",
        "[muster] rank 0 has completed no step for 91 s (backward)",
        '[muster] rank 0 |   File "train.py", line 4 in main',
        "[0] step 2",
    )
    assert found == {
        0: ["has completed no step for 91 s (backward)", '  File "train.py", line 4 in main'],
        1: ["has completed no step for 90 s", "no stack: the process does not answer"],
    }


def test_lines_of_the_script_are_no_stacks() -> None:
    assert stacks("[muster] rank 0 | no header", "x [muster] rank 0 has completed no step for 9 s", "[muster] hi") == {}


def test_a_log_can_neither_fill_the_memory_nor_control_the_terminal() -> None:
    header = "[muster] rank 0 has completed no step for 9 s"
    found = stacks(header, *["[muster] rank 0 | \x1b[2Jx"] * (2 * MAX_LINES), "[muster] rank 99999999 | x")
    assert len(found[0]) == MAX_LINES + 1
    assert found[0][1] == " [2Jx"
