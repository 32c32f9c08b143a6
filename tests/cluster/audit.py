"""The API server's audit log: what service accounts asked for, since the cluster's start."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cluster.places import State

Event = Mapping[str, Any]


def events(state: State) -> Iterator[Event]:
    """All that is written so far, the oldest first."""
    # The API server begins a new file when one is large; an old one's name says until when it went.
    for file in (*sorted(state.logs.glob("audit-*.log")), state.logs / "audit.log"):
        with file.open(encoding="utf-8") as log:
            for line in log:
                # The last one may be half written.
                if line.endswith("\n"):
                    yield json.loads(line)
