"""Find, in torch's flight recorder, a collective in which some ranks wait for others that have not entered it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from muster_worker.contract.collectives import GroupCollective, name_collective

MAX_CANDIDATES = 4
"""The maximum number of collectives to examine in a process group, because forged records may name many."""


@dataclass(frozen=True)
class BlockedCollective:
    """A collective in which `waiting_ranks` wait for `missing_ranks`, which have not entered it."""

    group: str
    operation: str
    sequence: int
    waiting_ranks: tuple[int, ...]
    missing_ranks: tuple[int, ...]

    @property
    def text(self) -> str:
        """The collective in a sentence: "all_reduce 7 of process group 0 (default_pg)"."""
        return name_collective(self.operation, self.sequence, self.group)


def find_blocked_collective(collectives: Mapping[int, Sequence[GroupCollective]]) -> BlockedCollective | None:
    """Return the blocked collective in which most of these ranks wait; None if the records show none.

    A rank without a record in a process group may not be a member of the group, so it does not count as missing.
    """
    groups: dict[str, list[tuple[int, GroupCollective]]] = {}
    for rank, entries in sorted(collectives.items()):
        for entry in entries:
            groups.setdefault(entry.group, []).append((rank, entry))
    blocked = (entry for group, members in groups.items() for entry in _find_blocked_in_group(group, members))
    return min(blocked, key=lambda entry: (-len(entry.waiting_ranks), entry.group, entry.sequence), default=None)


def _find_blocked_in_group(group: str, members: Sequence[tuple[int, GroupCollective]]) -> Iterator[BlockedCollective]:
    waiting: dict[tuple[int, str], list[int]] = {}
    for rank, entry in members:
        if entry.pending_sequence is not None and entry.pending_operation is not None:
            waiting.setdefault((entry.pending_sequence, entry.pending_operation), []).append(rank)
    candidates = nsmallest(MAX_CANDIDATES, waiting.items(), key=lambda item: (-len(item[1]), item[0]))
    for (sequence, operation), ranks in candidates:
        missing = _find_missing_ranks(members, sequence, frozenset(ranks))
        if missing:
            yield BlockedCollective(group, operation, sequence, tuple(ranks), missing)


def _find_missing_ranks(
    members: Sequence[tuple[int, GroupCollective]], sequence: int, waiting: frozenset[int]
) -> tuple[int, ...]:
    # A rank may wait in another collective that has the same sequence number.
    missing = (
        rank
        for rank, entry in members
        if rank not in waiting and (entry.sequence < sequence or entry.pending_sequence == sequence)
    )
    return tuple(dict.fromkeys(missing))
