"""The runs of this machine, from the files that `muster run` writes to their folders."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.backends.local.layout import FRAME_FILE
from muster.cli.board.frame import Frame
from muster.cli.board.frame_json import decode_frame
from muster.cli.web.source import JobEntry, JobNotFound

MAX_RUNS = 200
"""The list shows this many of the newest runs."""

MAX_BYTES = 64 * 1024 * 1024
"""The largest file that is read: far more than a frame of the largest job."""

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
            if facts.st_size > MAX_BYTES:
                raise JobNotFound(f"{path} is larger than {MAX_BYTES} bytes")
            frame = decode_frame(json.loads(path.read_bytes()))
        except (OSError, ValueError, RecursionError) as error:
            raise JobNotFound(f"{path}: {error}") from None
        if is_stale and frame.phase not in ENDED_PHASES:
            frame = replace(frame, notice=_STALE_NOTICE)
        self._frames[key] = _ReadFrame(version, frame)
        return frame

    def _find_runs(self) -> Iterator[tuple[float, Path]]:
        """Yield the time of the last write and the folder of each run."""
        for folder in self._list_folders():
            try:
                yield (folder / FRAME_FILE).stat().st_mtime, folder
            except OSError:
                continue

    def _list_folders(self) -> Sequence[Path]:
        if self._is_single:
            return (self.folder,)
        try:
            return tuple(self.folder.iterdir())
        except OSError:
            return ()

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
