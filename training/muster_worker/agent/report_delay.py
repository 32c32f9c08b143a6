"""Decides how soon a change of the node's state is reported. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from muster_worker.agent.state import NodeState
from muster_worker.contract.schema import AgentPhase

BRIEF_SECONDS = 0.2
"""How long a report waits for a state that follows soon: all ranks have started, or all have ended.

On a machine with many agents, all restart their ranks at once, and each report delays the ranks.
"""


def compute_report_delay(before: NodeState, after: NodeState) -> float:
    """Return the seconds until the change has to be reported; infinity if it can wait for the heartbeat."""
    # A new metric value or new progress alone can wait.
    if replace(before, metrics=(), trainer=None) == replace(after, metrics=(), trainer=None):
        return math.inf
    return BRIEF_SECONDS if _is_brief(before, after) else 0.0


def _is_brief(before: NodeState, after: NodeState) -> bool:
    """Whether another state follows soon, and the operator decides nothing because of this one."""
    if (before.problem, before.terminated_at, before.stop_call) != (
        after.problem,
        after.terminated_at,
        after.stop_call,
    ):
        return False
    if after.phase == AgentPhase.STOPPING:
        return True
    if after.phase != AgentPhase.RUNNING or after.launcher is not None:
        return False
    has_ended = any(rank.ended_at is not None for rank in after.ranks)
    return not has_ended and any(rank.started_at is None for rank in after.ranks)
