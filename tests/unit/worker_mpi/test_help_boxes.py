"""The part of mpirun's messages that a report contains: Open MPI prints the error first, and then much else."""

from muster.core.failure.rank_output import find_error_text
from muster_worker.contract.schema import MAX_LAST_LINES
from muster_worker.mpi.help_boxes import select_error_lines
from muster_worker.rank_group.tail import Tail

RULE = "-" * 74
ADVICE = tuple(f"advice {number}" for number in range(20))
SLOTS = (
    "There are not enough slots available in the system to satisfy the 99",
    "slots that were requested:",
    "  sleep",
)
HOSTFILE = (
    *(RULE, "Open RTE was unable to open the hostfile:", "    /nowhere", "Check to make sure.", RULE),
    *(RULE, "An internal error has occurred in ORTE:", "FORCE-TERMINATE", "Please report.", RULE),
)
TRACEBACK = ("Traceback (most recent call last):", "KeyError: 0")
SHORT = (RULE, "mpirun noticed that process rank 3 exited on signal 9 (Killed).", RULE)


def test_a_long_box_is_carried_from_its_beginning() -> None:
    lines = select_error_lines(("before", RULE, *SLOTS, *ADVICE, RULE))

    assert lines == (*SLOTS, *ADVICE)[:MAX_LAST_LINES]
    assert find_error_text(lines).startswith("There are not enough slots available in the system to satisfy the 99")


def test_of_boxes_in_a_row_the_first_says_what_is_wrong() -> None:
    assert find_error_text(select_error_lines(HOSTFILE)).startswith(
        "Open RTE was unable to open the hostfile: /nowhere"
    )


def test_a_warning_long_before_the_end_is_not_why_it_ended() -> None:
    warning = (RULE, "WARNING: no InfiniBand", *ADVICE, RULE)

    assert (
        select_error_lines((*warning, *ADVICE, *TRACEBACK, *SHORT)) == (*ADVICE, *TRACEBACK, *SHORT)[-MAX_LAST_LINES:]
    )
    assert select_error_lines((*warning, *TRACEBACK)) == (*ADVICE, RULE, *TRACEBACK)[-MAX_LAST_LINES:]


def test_what_has_no_box_or_half_of_one_is_carried_from_its_end() -> None:
    assert select_error_lines(()) == ()
    assert select_error_lines(TRACEBACK) == TRACEBACK
    assert select_error_lines((*ADVICE, RULE)) == (*ADVICE, RULE)[-MAX_LAST_LINES:]
    assert select_error_lines(("-" * 80, *ADVICE, "-" * 80))[-1] == "-" * 80


def test_open_mpi_5_writes_a_null_character_below_its_box() -> None:
    tail = Tail()
    tail.feed("\n".join((RULE, *SLOTS, "", *ADVICE, RULE, "\0")).encode())

    assert select_error_lines(tail.read_lines())[: len(SLOTS)] == SLOTS
