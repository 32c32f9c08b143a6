"""Writes the agent's modules, compiled, into a folder that all agents and ranks of a run share.

Python takes a fifth of a second of processor time to compile them, which each run would spend again.
"""

import compileall
import os
import py_compile
from importlib.util import cache_from_source
from pathlib import Path

import muster_worker
from muster.render.agent_archive import list_agent_files

_PACKAGE = Path(muster_worker.__file__).parent
_QUIET = 2
"""Print nothing, not even errors."""


def write_agent_folder(folder: Path) -> None:
    """Write the files of the agent's archive, with compiled modules. Raises `OSError`."""
    # Pip compiles a package that it installs. A checkout is compiled here once, if its folder can be written.
    compileall.compile_dir(_PACKAGE, quiet=_QUIET)
    for name, content in list_agent_files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        source = _PACKAGE.parent / name
        if source.suffix == ".py" and source.exists():
            _write_compiled_module(source, path)


def _write_compiled_module(source: Path, path: Path) -> None:
    compiled, copy = Path(cache_from_source(str(source))), Path(cache_from_source(str(path)))
    if not compiled.exists():
        # A rank may have PYTHONDONTWRITEBYTECODE.
        py_compile.compile(str(path), quiet=_QUIET)
        return
    # A compiled module is valid for a source of the same size and time.
    times = source.stat()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(compiled.read_bytes())
