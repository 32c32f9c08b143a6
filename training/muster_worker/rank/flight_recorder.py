"""Reads torch's flight recorder in a rank: the collective that the rank entered last in each process group.

torch keeps the last collectives of a process in memory, and can return them as JSON.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List

MAX_GROUPS = 4
"""Maximum number of process groups in a summary: those that the rank used last."""

MAX_NAME_CHARS = 64
"""Maximum length of a name, because a script chooses the description of a group."""


def read_groups() -> List[Dict[str, Any]]:
    """Return the summary of torch's records; empty if torch records nothing. May raise any exception."""
    torch = sys.modules["torch"]
    c10d, dumps = torch._C._distributed_c10d, []  # noqa: SLF001 - torch has no other functions for it
    if hasattr(c10d, "_dump_fr_trace_json"):
        dumps.append(c10d._dump_fr_trace_json(True, False))  # noqa: SLF001 - as above
    if hasattr(c10d, "_dump_nccl_trace_json") and torch.cuda.is_initialized():
        dumps.append(c10d._dump_nccl_trace_json(True, False))  # noqa: SLF001 - as above
    return summarize(entry for dump in dumps for entry in json.loads(dump).get("entries", ()))


def summarize(entries: Iterable[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the last collective of each process group, most recent first: the fields of `GroupCollective`.

    `entries` are torch's records, each group's oldest first. Point-to-point operations don't count: other ranks of the
    group don't take part in them.
    """
    groups: Dict[str, List[Dict[str, Any]]] = {}
    for entry in entries:
        if not entry.get("is_p2p"):
            groups.setdefault(_format_group_name(entry), []).append(entry)
    recent = sorted(groups.items(), key=lambda item: int(item[1][-1].get("time_created_ns", 0)), reverse=True)
    return [_summarize_group(group, records) for group, records in recent[:MAX_GROUPS]]


def _summarize_group(group: str, records: List[Dict[str, Any]]) -> Dict[str, Any]:
    pending = None
    for record in reversed(records):  # the collectives of a group complete in their order
        if record.get("retired") or record.get("state") == "completed":
            break
        pending = record
    return {
        "group": group,
        "operation": _read_operation(records[-1]),
        "sequence": int(records[-1]["collective_seq_id"]),
        "pending_operation": None if pending is None else _read_operation(pending),
        "pending_sequence": None if pending is None else int(pending["collective_seq_id"]),
    }


def _format_group_name(entry: Dict[str, Any]) -> str:
    name, description = (str(part) for part in entry["process_group"])
    return (f"{name} ({description})" if description not in ("", "undefined") else name)[:MAX_NAME_CHARS]


def _read_operation(entry: Dict[str, Any]) -> str:
    # For example "nccl:all_reduce".
    return str(entry["profiling_name"]).rpartition(":")[2][:MAX_NAME_CHARS]
