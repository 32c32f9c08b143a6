"""An agent's record of the processes that it has reaped."""

from muster_worker.machine.processes import ProcessExit
from muster_worker.rank_group.exit_statuses import MAX_ENTRIES, ExitStatuses


def test_the_newest_ends_are_remembered_however_many_there_were() -> None:
    reaped = ExitStatuses()
    for pid in range(MAX_ENTRIES + 2):
        reaped.add(ProcessExit(pid, 0, 0))
    assert (reaped.get(0), reaped.get(1)) == (None, None)
    assert (reaped.get(2), reaped.get(MAX_ENTRIES + 1)) == (ProcessExit(2, 0, 0), ProcessExit(MAX_ENTRIES + 1, 0, 0))


def test_a_number_that_is_used_again_is_the_newer_process() -> None:
    reaped = ExitStatuses()
    for pid in (7, *range(100, 100 + MAX_ENTRIES - 1)):
        reaped.add(ProcessExit(pid, 0, 0))
    reaped.add(ProcessExit(7, -1, 9))
    reaped.add(ProcessExit(8, 0, 0))
    assert reaped.get(7) == ProcessExit(7, -1, 9)
    assert reaped.get(100) is None
