"""The agent's exit code, from the ends of its ranks. Pure."""

from __future__ import annotations

from typing import Optional

from muster_worker.agent.state import NodeState
from muster_worker.exit_codes import STOPPED_EXIT_CODE


def have_ranks_succeeded(state: NodeState) -> bool:
    """Whether all ranks of the node ended by themselves with exit code 0."""
    return _have_ranks_ended_by_themselves(state) and all(record.exit_code == 0 for record in state.ranks)


def _have_ranks_ended_by_themselves(state: NodeState) -> bool:
    return bool(state.ranks) and all(record.ended_at is not None and not record.stopped for record in state.ranks)


def compute_exit_code(state: NodeState) -> int:
    """Return the agent's exit code: 0 only if all ranks ended by themselves with 0.

    Otherwise it is the first of these that applies: `STOPPED_EXIT_CODE` after a signal to the agent, the shell's code
    for the first failed rank, the launcher's code, 1.
    """
    have_ended = _have_ranks_ended_by_themselves(state)
    # Ranks that ended before the signal keep their result.
    if state.terminated_at is not None and not have_ended:
        return STOPPED_EXIT_CODE
    failed_ranks = [record for record in state.ranks if record.ended_at is not None and record.exit_code != 0]
    if failed_ranks:
        first_failed = min(failed_ranks, key=lambda record: (record.stopped, record.ended_at or 0.0, record.rank))
        return to_shell_exit_code(first_failed.exit_code, first_failed.signal)
    if state.launcher is not None and state.launcher.exit_code != 0:
        return to_shell_exit_code(state.launcher.exit_code, state.launcher.signal)
    return 0 if have_ended and state.problem is None else 1


def to_shell_exit_code(code: Optional[int], signal_number: Optional[int]) -> int:
    """Return the exit code that a shell would return: 128 + the signal's number; 1 if both are unknown."""
    if signal_number is not None:
        return 128 + signal_number
    return 1 if code is None else code
