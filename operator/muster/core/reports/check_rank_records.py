"""Validate the end and the last lines of a rank or a launcher, and the last collectives of a rank."""

from muster_worker.contract.collectives import MAX_COLLECTIVE_CHARS, MAX_GROUPS, GroupCollective
from muster_worker.contract.error_text import MAX_ERROR_CHARS, RankError
from muster_worker.contract.schema import MAX_LAST_LINES, MAX_LINE_CHARS

MAX_EXIT_CODE = 255
MAX_SIGNAL = 64


def find_collectives_problem(collectives: tuple[GroupCollective, ...]) -> str | None:
    """Return which limit the collectives exceed; None for valid ones."""
    if len(collectives) > MAX_GROUPS:
        return f"collectives: more than {MAX_GROUPS}"
    for index, entry in enumerate(collectives):
        words = (entry.group, entry.operation, entry.pending_operation or "")
        if any(len(word) > MAX_COLLECTIVE_CHARS for word in words):
            return f"collectives[{index}]: a name longer than {MAX_COLLECTIVE_CHARS} characters"
        if entry.sequence < 0 or (entry.pending_sequence or 0) < 0:
            return f"collectives[{index}]: a sequence number below 0"
    return None


def find_lines_problem(lines: tuple[str, ...]) -> str | None:
    """Return which limit the lines exceed; None for valid ones."""
    if len(lines) > MAX_LAST_LINES:
        return f"last_lines: more than {MAX_LAST_LINES}"
    if any(len(line) > MAX_LINE_CHARS for line in lines):
        return f"last_lines: a line longer than {MAX_LINE_CHARS} characters"
    return None


def find_error_problem(error: RankError | None) -> str | None:
    """Return which limit the error exceeds; None for a valid one."""
    if error is not None and not 0 < len(error.text) <= MAX_ERROR_CHARS:
        return f"error.text: expected 1 to {MAX_ERROR_CHARS} characters"
    return None


def find_end_problem(exit_code: int | None, signal: int | None) -> str | None:
    """Return what is wrong with an end; None for a valid one."""
    if exit_code is not None and signal is not None:
        return "exit_code: set beside a signal"
    if exit_code is not None and not 0 <= exit_code <= MAX_EXIT_CODE:
        return f"exit_code: expected 0 to {MAX_EXIT_CODE}"
    if signal is not None and not 1 <= signal <= MAX_SIGNAL:
        return f"signal: expected 1 to {MAX_SIGNAL}"
    return None
