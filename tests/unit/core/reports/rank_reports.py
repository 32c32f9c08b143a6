"""Builders for agents' reports."""

from typing import Any

from muster.core.reports.check import JobShape
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report

T0 = 1_700_000_000.0
UID = "uid-1"
SHAPE = JobShape(UID, nodes=3, procs_per_node=2, created_at=T0 - 100.0)


def running_rank(rank: int, **changes: Any) -> RankReport:
    return RankReport(
        **{"rank": rank, "local_rank": rank % 2, "state": RankState.RUNNING, "started_age": 5.0, **changes}
    )


def exited_rank(rank: int, **changes: Any) -> RankReport:
    fields: dict[str, Any] = {"state": RankState.EXITED, "ended_age": 1.0}
    if "signal" not in changes:
        fields["exit_code"] = 0
    return running_rank(rank, **{**fields, **changes})


def report(sequence: int, *ranks: RankReport, **changes: Any) -> Report:
    fields = {
        "job_uid": UID,
        "node": 0,
        "replacement": 0,
        "attempt": 1,
        "sequence": sequence,
        "phase": AgentPhase.RUNNING,
        "ranks": ranks,
    }
    return Report(**{**fields, **changes})
