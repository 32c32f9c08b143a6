"""The agent's modules in a folder, as `muster run` writes them: Python loads them faster than from the archive."""

import functools
import tempfile
from pathlib import Path

from muster.backends.local.agent_folder import write_agent_folder
from temporary_folder import SHARED


@functools.cache
def share_agent_folder() -> Path:
    """Return a folder that all tests of this process share, so that Python compiles nothing for them."""
    folder = Path(tempfile.mkdtemp(prefix=SHARED))
    write_agent_folder(folder)
    return folder
