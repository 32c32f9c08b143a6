"""Changes the command line that the kernel shows for a forked process, for ps and pkill."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

_ARGUMENTS_START, _ARGUMENTS_END = 45, 46
"""/proc/pid/stat, fields 48 and 49 of proc(5), counted after the command's name."""


def write_command_line(command: Sequence[str]) -> None:
    """Replace the arguments that the kernel shows for this process. Cut those that don't fit into the old space."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
    if start >= end:  # gVisor has 0 for both
        return
    text = b"".join(os.fsencode(word) + b"\0" for word in command)[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))
