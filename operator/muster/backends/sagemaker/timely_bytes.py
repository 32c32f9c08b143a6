"""What is uploaded, for so long: botocore's own time limit is one for the next bytes."""

from __future__ import annotations

import io
import time


class TimelyBytes(io.BytesIO):
    """Can be read for `seconds` from now; then its reader gets a `TimeoutError`, and so ends."""

    def __init__(self, content: bytes, seconds: float) -> None:
        super().__init__(content)
        self._until = time.monotonic() + seconds

    def read(self, size: int | None = -1, /) -> bytes:
        if time.monotonic() > self._until:
            raise TimeoutError("the time to upload it is over")
        return super().read(size)
