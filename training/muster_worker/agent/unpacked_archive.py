"""Unpacks the agent's archive for its ranks.

Python compiles each module that it imports from an archive, at each start. From a folder it loads the compiled module,
which takes half the processor time. That matters when all ranks restart at once.
"""

from __future__ import annotations

import os
import py_compile
import zipfile
from typing import List

_PACKAGES_OF_RANKS = ("muster_worker/rank/", "muster_worker/site/")
_MODULES_OF_RANKS = ("muster_worker/__init__.py", "muster_worker/entry.py", "muster_worker/exit_codes.py")
"""What each rank's wrapper and hook import. Python itself compiles the other modules when they are first imported."""


def unpack(archive: str, folder: str) -> None:
    """Unpack `archive` into `folder`, and compile what ranks import. Raises `OSError`.

    An agent that runs again in its pod replaces the files of the one before.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(folder)
            names = opened.namelist()
    except zipfile.BadZipFile as error:
        raise OSError(f"{archive}: {error}") from error
    for name in _select_modules_of_ranks(names):
        # Compile here, because a rank may have PYTHONDONTWRITEBYTECODE.
        py_compile.compile(os.path.join(folder, name))


def _select_modules_of_ranks(names: List[str]) -> List[str]:
    return [name for name in names if name in _MODULES_OF_RANKS or name.startswith(_PACKAGES_OF_RANKS)]
