"""A job's code as `sourcedir.tar.gz`: the same files give the same bytes, whenever they are packed. Pure."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from muster.api.s3_uri import S3Uri
from muster.storage.source_files import SourceFiles

NAME = "sourcedir.tar.gz"
"""What the SageMaker SDK calls it."""

_LEVEL = 6
"""Given, not left to a default: another level means other bytes."""


@dataclass(frozen=True)
class SourceArchive:
    """An archive's bytes, and the SHA-256 of what they unpack to, in hexadecimal digits.

    Builds of zlib compress the same text to other bytes: what is inside names the archive.
    """

    data: bytes
    sha256: str

    def place(self, folder: S3Uri) -> S3Uri:
        """Where it is kept below `folder`: each content has one place, so that it is uploaded once."""
        return folder.below("source", self.sha256, NAME)


def pack(files: SourceFiles) -> SourceArchive:
    """The archive of `files`, which were `checked`."""
    outer = io.BytesIO()
    # mtime 0 and no name in gzip's header
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=outer, mtime=0) as compressed:
        told = _Hashed(compressed)
        # USTAR with PAX for what it can't say: no time, no user, nothing of this machine
        with tarfile.open(fileobj=cast("BinaryIO", told), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for member, content in _members(files):
                archive.addfile(member, io.BytesIO(content))
    return SourceArchive(outer.getvalue(), told.hash.hexdigest())


class _Hashed:
    """What is written to it goes on compressed, so that it is in memory once."""

    def __init__(self, compressed: gzip.GzipFile) -> None:
        self.hash = hashlib.sha256()
        self._compressed = compressed

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._compressed.write(data)


def _members(files: SourceFiles) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for path in sorted(files, key=lambda path: path.encode("utf-8")):
        file = files[path]
        member = tarfile.TarInfo(path)
        member.size = len(file.content)
        member.mode = 0o755 if file.executable else 0o644
        member.mtime = 0
        yield member, file.content
