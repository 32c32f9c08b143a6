"""An agent's output as lines: bytes come in as they come, whole lines go out."""

from __future__ import annotations

MAX_LINE_BYTES = 64 * 1024
"""A longer line is passed on in pieces, so that a run's memory stays small whatever its ranks print."""


class AgentLineReader:
    """Collects bytes and gives back whole lines as text; what isn't UTF-8 becomes U+FFFD.

    That is all: what ranks wrote the agent has made readable already (`muster_worker.rank_group.lines`).
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes, without their ends."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            whole.append(self._rest)
            self._rest = b""
        return [line.decode("utf-8", "replace") for line in whole]

    def close(self) -> list[str]:
        """The last line, when it has no end."""
        rest, self._rest = self._rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []
