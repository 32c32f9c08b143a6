"""The API server's audit log: the requests of service accounts since the cluster's start."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cluster.places import State

Event = Mapping[str, Any]


def events(state: State) -> Iterator[Event]:
    """Return all events so far, oldest first."""
    # The API server begins a new file when one is large; an old file's name has its end time.
    for file in (*sorted(state.logs.glob("audit-*.log")), state.logs / "audit.log"):
        with file.open(encoding="utf-8") as log:
            for line in log:
                # The last line may be incomplete.
                if line.endswith("\n"):
                    yield json.loads(line)
