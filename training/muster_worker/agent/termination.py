"""The agent's termination message: a JSON summary that fits Kubernetes' limit."""

from __future__ import annotations

import json
from typing import Dict, Optional, Tuple

from muster_worker.contract.schema import RankReport, Report

MAX_BYTES = 4096
"""Kubernetes truncates longer termination messages."""


def write_summary(path: str, report: Report, exit_code: int) -> Optional[str]:
    """Write the summary to the termination log. Returns a line for the agent's log if that fails."""
    try:
        with open(path, "wb") as file:
            file.write(build_summary(report, exit_code))
    except OSError as error:
        return f"no termination log: {error}"
    return None


def build_summary(report: Report, exit_code: int) -> bytes:
    """Return a summary of the node's end and its first failed rank, in at most `MAX_BYTES`."""
    first_failed = find_first_failure(report)
    document: Dict[str, object] = {
        "jobUid": report.job_uid,
        "node": report.node,
        "replacement": report.replacement,
        "attempt": report.attempt,
        "exitCode": exit_code,
        "problem": report.problem and report.problem.message[:512],
        "problemReason": report.problem and report.problem.reason,
        "terminated": report.terminated_age is not None,
        "ranks": len(report.ranks),
        "succeeded": sum(1 for rank in report.ranks if rank.exit_code == 0 and not rank.stopped),
    }
    if report.launcher is not None:
        end = report.launcher
        document["launcher"] = {
            "name": end.name,
            "exitCode": end.exit_code,
            "signal": end.signal,
            "reason": end.reason,
            "stopped": end.stopped,
            "lastLines": list(end.last_lines) if first_failed is None else [],
        }
    if first_failed is not None:
        document["firstFailure"] = {
            "rank": first_failed.rank,
            "exitCode": first_failed.exit_code,
            "signal": first_failed.signal,
            "reason": first_failed.reason,
            "stopped": first_failed.stopped,
            "step": first_failed.step,
            "rssBytes": first_failed.rss_bytes,
            "error": first_failed.error and first_failed.error.text[:512],
            "lastLines": list(first_failed.last_lines),
        }
    return _encode_within_limit(document)


def find_first_failure(report: Report) -> Optional[RankReport]:
    """Return the first rank that failed on this node. Ranks that failed by themselves come before stopped ones."""
    failed_ranks = [rank for rank in report.ranks if rank.ended_age is not None and rank.exit_code != 0]
    return min(failed_ranks, key=_get_failure_order, default=None)


def _get_failure_order(rank: RankReport) -> Tuple[bool, float, int]:
    if rank.error is not None:
        return (False, -rank.error.age, rank.rank)
    return (rank.stopped, -(rank.ended_age or 0.0), rank.rank)


def describe_failure(report: Report) -> Optional[str]:
    """Return the text for output/failure; None if nothing failed."""
    if report.problem is not None:
        return report.problem.message
    first_failed = find_first_failure(report)
    if first_failed is not None:
        lines, error = first_failed.last_lines, first_failed.error
        # Many lines may have followed the error.
        return "\n".join(lines if error is None or error.text.split("\n")[0] in lines else (error.text, *lines))
    if report.launcher is not None and report.launcher.exit_code != 0:
        return "\n".join(report.launcher.last_lines)
    return None


def _encode_within_limit(document: Dict[str, object]) -> bytes:
    while True:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        if len(text) <= MAX_BYTES or not _drop_line(document):
            return text[:MAX_BYTES]


def _drop_line(document: Dict[str, object]) -> bool:
    for key in ("firstFailure", "launcher"):
        entry = document.get(key)
        if isinstance(entry, dict) and entry["lastLines"]:
            # The oldest line is the least useful one.
            del entry["lastLines"][0]
            return True
    return False
