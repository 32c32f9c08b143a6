"""The API server's audit log: who asked for what, since the cluster's start."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cluster.places import State

Event = Mapping[str, Any]


def events(state: State) -> Iterator[Event]:
    """All that is written so far."""
    with (state.logs / "audit.log").open(encoding="utf-8") as log:
        for line in log:
            # The last one may be half written.
            if line.endswith("\n"):
                yield json.loads(line)
