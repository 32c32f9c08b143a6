"""Which Python a launcher would have used for its ranks: the one that runs the launcher itself.

torchrun starts its ranks with its own interpreter, unless PYTHON_EXEC names another. There we put a shim
(`python_exec.py`) that starts a rank's wrapper, and the wrapper finds here what torchrun would have used.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional


def python_of_parent(environment: Mapping[str, str]) -> str:
    """The interpreter of the parent process, a virtual environment's link not followed. Raises `OSError`."""
    parent = os.getppid()
    with open(f"/proc/{parent}/cmdline", "rb") as file:
        called = os.fsdecode(file.read().split(b"\0")[0])
    if os.path.basename(called).startswith(("python", "pypy")):
        result = _find_interpreter(called, os.readlink(f"/proc/{parent}/cwd"), environment)
        if result is not None:
            return result
    return os.readlink(f"/proc/{parent}/exe")  # somebody has changed argv[0]


def _find_interpreter(called: str, folder: str, environment: Mapping[str, str]) -> Optional[str]:
    if "/" in called:
        candidates = [os.path.join(folder, called)]
    else:
        candidates = [os.path.join(entry, called) for entry in environment.get("PATH", os.defpath).split(":")]
    return next((path for path in candidates if os.access(path, os.X_OK) and os.path.isfile(path)), None)
