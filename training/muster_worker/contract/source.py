"""The edited code of `muster rerun` in a Start command, and its limits."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_SOURCE_BYTES = 512 * 1024
"""Maximum size of the packed code: in Base64 it has to fit into a ConfigMap of 1 MiB."""

MAX_SOURCE_FILES = 2000
MAX_UNPACKED_SOURCE_BYTES = 16 * 1024 * 1024
"""The limits for the unpacked files. They are in the node's memory."""


@dataclass(frozen=True)
class EditedSource:
    """Files that replace the job's code. `archive` is a .tar.gz archive in Base64; "" where only its hash is known."""

    sha256: str  # of the archive, in hexadecimal digits
    archive: str = field(default="", repr=False)
