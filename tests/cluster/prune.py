"""Limits the cache: each build removes entries that no build has used for two weeks."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from cluster.places import alone_in_cache, cache
from cluster.say import say

KEPT_SECONDS = 14 * 24 * 3600.0
# Entries with names other than hashes, or without further use.
KEPT = ("lock",)


def prune() -> None:
    """Remove outdated entries."""
    with alone_in_cache():
        for entry in stale(cache(), time.time(), set(programs_that_run())):
            say(f"removing {entry.name}, which nothing has used for two weeks")
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def stale(folder: Path, now: float, running: set[Path]) -> list[Path]:
    """Entries that weren't used for a long time, and that contain no running program."""
    return [
        entry
        for entry in sorted(folder.iterdir())
        if entry.name not in KEPT
        and now - entry.stat().st_mtime > KEPT_SECONDS
        and not any(program.is_relative_to(entry) for program in running)
    ]


def programs_that_run() -> Iterator[Path]:
    """Yield the programs of the machine's processes."""
    for process in Path("/proc").iterdir():
        try:
            yield (process / "exe").readlink()
        except OSError:
            # It has exited, is a kernel thread, or is not a process.
            continue
