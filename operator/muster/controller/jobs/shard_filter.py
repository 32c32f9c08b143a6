"""Select the jobs that this operator's shard runs from the objects that the watch reports."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.core.shard import FIELD, Shard
from muster.objects.kubernetes.job_source import parse_part, read_identity
from muster.objects.kubernetes.json_parts import MalformedJson, NestingTooDeep
from muster.objects.kubernetes.kinds import Object

_log = logging.getLogger(__name__)

_MIN_CHARS = 64
"""A shorter status may be the default, which muster has not written."""


@dataclass
class ShardFilter:
    """Selects the jobs of `shard`. The first shard logs jobs of shards that do not exist any more."""

    shard: Shard
    _logged_uids: set[str] = field(default_factory=set)

    def has_job(self, source: Object) -> bool:
        """Whether the job's object belongs to the shard. Any thread may call this."""
        uid, status = read_identity(source).uid, source.get("status")
        # Most statuses name no shard: don't parse each of them once more.
        if isinstance(status, str) and len(status) >= _MIN_CHARS and f'"{FIELD}"' not in status:
            return self.shard.is_first
        return self.shard.has_job(uid, _read_status(source))

    def log_missing_shard(self, source: Object) -> None:
        """Log once if no operator runs the job because the number of shards was reduced."""
        identity, missing = read_identity(source), self.shard.find_missing_shard(_read_status(source))
        if self.shard.index or missing is None or identity.uid in self._logged_uids:
            return
        self._logged_uids.add(identity.uid)
        _log.warning(
            "%s/%s is not reconciled: it belongs to shard %d of an earlier configuration: set shards to at least %d, "
            "or delete the job",
            *(identity.namespace, identity.name, missing, missing + 1),
        )


def _read_status(source: Object) -> Mapping[str, JSON]:
    try:
        return parse_part(source, "status")
    except (NestingTooDeep, MalformedJson):
        # muster writes no such status. The job's controller reports it.
        return {}
