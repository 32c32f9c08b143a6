"""The runs of this machine, from the files that `muster run` writes to their folders."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.backends.local.layout import FRAME_FILE, LOGS_FOLDER
from muster.cli.board.frame import Frame
from muster.cli.board.frame_json import decode_frame
from muster.cli.board.rank_output import RankOutput, read_rank_output
from muster.cli.board.view import find_node
from muster.cli.web.source import JobEntry, JobNotFound

MAX_RUNS = 200
"""The list shows this many of the newest runs."""

MAX_BYTES = 64 * 1024 * 1024
"""The largest file that is read: far more than a frame of the largest job."""

MAX_LOG_BYTES = 1024 * 1024
"""The part of a node's log, at its end, in which the page looks for a rank's lines."""

STALE_SECONDS = 10.0
"""`muster run` writes its file twice a second: one that is this old and has not ended does not run any more."""

ENDED_PHASES = ("Succeeded", "Failed")

_STALE_NOTICE = "muster run does not write its state any more: it was killed or suspended. This is its last state."


@dataclass(frozen=True)
class _ReadFrame:
    version: tuple[int, int, bool]
    frame: Frame


@dataclass
class LocalRuns:
    """The runs in `folder`, or the single run whose folder it is."""

    folder: Path
    _frames: dict[str, _ReadFrame] = field(default_factory=dict)

    async def list_jobs(self) -> Sequence[JobEntry]:
        """Return the newest runs."""
        newest = sorted(self._find_runs(), key=lambda item: item[0], reverse=True)[:MAX_RUNS]
        entries = []
        for _, path in newest:
            try:
                frame = await self.read_frame(path.name)
            except JobNotFound:
                continue
            entries.append(JobEntry(path.name, frame.name, frame.phase, frame.world))
        return entries

    async def read_frame(self, key: str) -> Frame:
        """Return the run's newest frame. Raises `JobNotFound`."""
        path = self._get_run(key) / FRAME_FILE
        try:
            facts = path.stat()
            is_stale = time.time() - facts.st_mtime > STALE_SECONDS
            version = (facts.st_mtime_ns, facts.st_ino, is_stale)
            known = self._frames.get(key)
            if known is not None and known.version == version:
                return known.frame
            if not stat.S_ISREG(facts.st_mode):
                # to read a pipe would block the server
                raise JobNotFound(f"{path} is not a regular file")
            if facts.st_size > MAX_BYTES:
                raise JobNotFound(f"{path} is larger than {MAX_BYTES} bytes")
            frame = decode_frame(json.loads(path.read_bytes()))
        except (OSError, ValueError, RecursionError) as error:
            raise JobNotFound(f"{path}: {error}") from None
        if is_stale and frame.phase not in ENDED_PHASES:
            frame = replace(frame, notice=_STALE_NOTICE)
        self._frames[key] = _ReadFrame(version, frame)
        return frame

    async def read_rank(self, key: str, rank: int) -> RankOutput:
        """Return the rank's last output, from the end of its node's log. Raises `JobNotFound`."""
        frame = await self.read_frame(key)
        if not 0 <= rank < frame.world:
            raise JobNotFound(f"{frame.name} has no rank {rank}")
        node = f"{frame.name}-{find_node(frame.members, rank // frame.procs_per_node)}"
        # Compare with the files that exist, so that no job's name can be a path.
        logs = (path for path in _list_files(self._get_run(key) / LOGS_FOLDER) if path.name == f"{node}.log")
        log = next(logs, None)
        return RankOutput() if log is None or not log.is_file() else read_rank_output(node, rank, _read_last_lines(log))

    def _find_runs(self) -> Iterator[tuple[float, Path]]:
        """Yield the time of the last write and the folder of each run."""
        for folder in self._list_folders():
            try:
                yield (folder / FRAME_FILE).stat().st_mtime, folder
            except OSError:
                continue

    def _list_folders(self) -> Sequence[Path]:
        return (self.folder,) if self._is_single else _list_files(self.folder)

    @property
    def _is_single(self) -> bool:
        return (self.folder / FRAME_FILE).is_file()

    def _get_run(self, key: str) -> Path:
        """Return the folder of the run. Raises `JobNotFound`."""
        # Compare with the folders that exist, so that no key can name a path outside of them.
        for folder in self._list_folders():
            if folder.name == key:
                return folder
        raise JobNotFound(f"{self.folder} has no run {key}")


def _list_files(folder: Path) -> Sequence[Path]:
    try:
        return tuple(folder.iterdir())
    except OSError:
        return ()


def _read_last_lines(path: Path) -> Sequence[str]:
    """Return the whole lines in the last part of a file; none if it can't be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_LOG_BYTES))
            lines = file.read(MAX_LOG_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return ()
    return lines if size <= MAX_LOG_BYTES else lines[1:]
