"""Finds the interpreter that runs the launcher. Without muster the launcher would use it for its ranks, too.

torchrun starts ranks with its own interpreter unless PYTHON_EXEC names another program. The agent sets PYTHON_EXEC to a
program (`per_node.py`) that starts a rank's wrapper. The wrapper then needs the original interpreter.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional


def find_parent_python(environment: Mapping[str, str]) -> str:
    """Return the path of the parent process' interpreter, with a virtual environment's link. Raises `OSError`."""
    parent = os.getppid()
    with open(f"/proc/{parent}/cmdline", "rb") as file:
        program = os.fsdecode(file.read().split(b"\0")[0])
    if os.path.basename(program).startswith(("python", "pypy")):
        result = _find_interpreter(program, os.readlink(f"/proc/{parent}/cwd"), environment)
        if result is not None:
            return result
    return os.readlink(f"/proc/{parent}/exe")  # the process has changed its argv[0]


def _find_interpreter(program: str, folder: str, environment: Mapping[str, str]) -> Optional[str]:
    if "/" in program:
        candidates = [os.path.join(folder, program)]
    else:
        candidates = [os.path.join(entry, program) for entry in environment.get("PATH", os.defpath).split(":")]
    return next((path for path in candidates if os.access(path, os.X_OK) and os.path.isfile(path)), None)
