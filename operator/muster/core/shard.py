"""Distribute jobs over several leaders: each job belongs to one shard, and each shard has one leader. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_integer
from muster.api.status.status import DEFAULT_STATUS

MAX_SHARDS = 64
"""The API server sends every change of a job to every shard, so more shards do not help."""

FIELD = "shard"
"""The field of the status that names the job's shard. Only shards after the first one write it."""


@dataclass(frozen=True)
class Shard:
    """Shard `index` of `count`, counted from 0. The default runs all jobs."""

    index: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it has the jobs whose status, which muster has written, names no shard."""
        return self.index == 0

    @property
    def suffix(self) -> str:
        """The end of the names of the shard's Lease, Service and agent ConfigMaps. The first shard has none."""
        return f"-{self.index}" if self.index else ""

    @property
    def recorded_index(self) -> int | None:
        """The index in the status of the shard's jobs; None for the first shard."""
        return self.index or None

    def has_job(self, uid: str, status: Mapping[str, JSON]) -> bool:
        """Whether the job with this stored status belongs to the shard.

        A job stays in its shard when the number of shards changes, because its agents report to the shard's collector.
        """
        recorded = read_integer(status.get(FIELD))
        if recorded is not None:
            return recorded == self.index
        # The API server adds a default to the status of a new job.
        if status.keys() - DEFAULT_STATUS.keys():
            return self.is_first
        return _hash_uid(uid) % self.count == self.index

    def find_missing_shard(self, status: Mapping[str, JSON]) -> int | None:
        """Return the shard in the stored status if no such shard exists any more."""
        recorded = read_integer(status.get(FIELD))
        return recorded if recorded is not None and recorded >= self.count else None


def _hash_uid(uid: str) -> int:
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big")
