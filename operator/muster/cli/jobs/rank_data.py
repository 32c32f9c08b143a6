"""The ranks of a job as data and as plain lines, for `muster ranks -o`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.cli.board.observed_job import ObservedJob
from muster.cli.board.view import RankRow, View, find_node, make_rank_rows, read_members
from muster.core.failure.rank_output import sanitize_line

_TITLES = ("RANK", "NODE", "POD", "KUBERNETES NODE", "STATE", "STEP", "BEHIND", "NOTE")


def build_rank_data(job: ObservedJob, view: View) -> JSON:
    """Return an object with an entry for each rank, whose fields are those of `status.ranks.details`."""
    status = view.status
    result: dict[str, JSON] = {
        "name": view.name,
        "namespace": read_mapping(job.resource.get("metadata")).get("namespace"),
        "phase": status.phase,
        "message": status.message,
        "attempt": status.attempt,
        "ranks": [_build_entry(row, view) for row in make_rank_rows(view)],
    }
    return result


def _build_entry(row: RankRow, view: View) -> JSON:
    members = read_members(view.status)
    entry: dict[str, JSON] = {
        "rank": row.rank,
        "node": find_node(members, row.rank // view.procs_per_node),
        "state": row.state,
    }
    if row.step is not None:
        entry["step"] = row.step
    if row.behind:
        entry["stepsBehind"] = row.behind
    for detail in view.status.ranks.details if view.status.ranks is not None else ():
        if detail.rank == row.rank:
            entry |= detail.model_dump(mode="json", by_alias=True, exclude_none=True)
    return entry


def format_rank_lines(view: View) -> list[str]:
    """Return a line for each rank, without shortening any."""
    details = {detail.rank: detail for detail in (view.status.ranks.details if view.status.ranks is not None else ())}
    lines: list[Sequence[str]] = [_TITLES]
    for row in make_rank_rows(view):
        detail = details.get(row.rank)
        pod, kube_node = (detail.pod, detail.node_name) if detail is not None else (None, None)
        numbers = [str(row.rank), row.node, pod or "-", kube_node or "-", row.state]
        steps = ["-" if count is None else str(count) for count in (row.step, row.behind)]
        lines.append([*numbers, *steps, sanitize_line(row.note)])
    widths = [max(len(line[index]) for line in lines) for index in range(len(_TITLES))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
