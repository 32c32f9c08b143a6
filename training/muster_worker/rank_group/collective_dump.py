"""Requests the last collectives of hooked ranks, and reads their answers."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, replace
from typing import Dict, Mapping, Tuple

from muster_worker.contract import wire
from muster_worker.contract.collectives import MAX_COLLECTIVE_CHARS, MAX_GROUPS, GroupCollective
from muster_worker.rank import collectives
from muster_worker.rank_group import progress
from muster_worker.rank_group.rank_links import RankLink

POLL_SECONDS = 0.01

ANSWER_SECONDS = 0.3
"""Time limit for all ranks of the node together: a hanging rank must not delay the agent's other work."""

MAX_ANSWER_BYTES = 8192


@dataclass(frozen=True)
class RankAnswer:
    """A rank's answer: the process groups that it used last, most recent first."""

    groups: Tuple[GroupCollective, ...]


def read_collectives(links: Mapping[int, RankLink]) -> Dict[int, Tuple[GroupCollective, ...]]:
    """Return the last collectives of the ranks that answer in time."""
    files = {rank: link.hello.progress for rank, link in links.items() if link.hello is not None}
    return capture_collectives(files, ANSWER_SECONDS)


def capture_collectives(progress_files: Mapping[int, str], seconds: float) -> Dict[int, Tuple[GroupCollective, ...]]:
    """Return the answers of the ranks with these progress files, by the same keys, after at most `seconds`."""
    pending = {rank: path + collectives.ANSWER_SUFFIX for rank, path in progress_files.items() if _send_request(path)}
    result: Dict[int, Tuple[GroupCollective, ...]] = {}
    deadline = time.monotonic() + seconds
    while pending and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        for rank, path in list(pending.items()):
            if os.path.lexists(path):
                del pending[rank]
                result[rank] = _read(path)
    return {rank: groups for rank, groups in result.items() if groups}


def _send_request(progress_path: str) -> bool:
    """Write a byte to the rank's named pipe. Return whether a rank may answer."""
    try:
        _remove(progress_path + collectives.ANSWER_SUFFIX)
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        # `open` fails if no process reads the pipe.
        pipe = os.open(progress_path + collectives.REQUEST_SUFFIX, flags)
    except (OSError, ValueError):  # ValueError: the path has a null byte
        return False
    try:
        return stat.S_ISFIFO(os.fstat(pipe).st_mode) and os.write(pipe, b"\n") == 1
    except OSError:  # the pipe is full, or its reader has ended meanwhile
        return False
    finally:
        os.close(pipe)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _read(path: str) -> Tuple[GroupCollective, ...]:
    # A user's process can write this file.
    try:
        with os.fdopen(progress.open_regular_file(path), "rb") as file:
            answer = wire.decode(RankAnswer, file.read(MAX_ANSWER_BYTES))
    except (OSError, wire.MalformedDocument):
        return ()
    valid_groups = (group for group in answer.groups if group.sequence >= 0 and (group.pending_sequence or 0) >= 0)
    return tuple(map(_shorten, valid_groups))[:MAX_GROUPS]


def _shorten(group: GroupCollective) -> GroupCollective:
    return replace(
        group,
        group=_clean(group.group),
        operation=_clean(group.operation),
        pending_operation=None if group.pending_operation is None else _clean(group.pending_operation),
    )


def _clean(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text[:MAX_COLLECTIVE_CHARS])
