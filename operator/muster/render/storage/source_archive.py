"""A job's code as `sourcedir.tar.gz`: the same files give the same bytes, whenever they are packed."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO, Protocol, cast

from muster.api.s3_uri import S3Uri
from muster.render.storage.source_files import SourceFiles

NAME = "sourcedir.tar.gz"
"""What the SageMaker SDK calls it."""

_LEVEL = 6
"""Given, not left to a default: another level means other bytes."""


@dataclass(frozen=True)
class SourceArchive:
    """An archive that was written to a file: its size in bytes, and two hashes.

    `sha256` is that of what it unpacks to, in hexadecimal digits: builds of zlib compress the same text to other bytes,
    so what is inside names the archive. `checksum` is the file's own SHA-256 as Amazon S3 writes it, in Base64.
    """

    size: int
    sha256: str
    checksum: str

    def place(self, folder: S3Uri) -> S3Uri:
        """Where it is kept below `folder`: each content has one place, so that it is uploaded once."""
        return folder.below("source", self.sha256, NAME)


class Content(Protocol):
    """What a file's content is read from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many."""
        ...


@dataclass(frozen=True)
class Member:
    """A file of an archive. `content` opens its content, which has `size` bytes."""

    path: str
    size: int
    executable: bool
    content: Callable[[], Content]


def members_of(files: SourceFiles) -> list[Member]:
    """Files that are in memory."""
    return [
        Member(path, len(file.content), file.executable, lambda content=file.content: io.BytesIO(content))  # type: ignore[misc]
        for path, file in files.items()
    ]


def pack(members: Iterable[Member], into: BinaryIO) -> SourceArchive:
    """Write the archive of `members`, whose paths were checked, to `into`. Reads them piece by piece."""
    outer = _Hashed(into)
    # mtime 0 and no name in gzip's header
    with gzip.GzipFile(
        filename="", mode="wb", compresslevel=_LEVEL, fileobj=cast("BinaryIO", outer), mtime=0
    ) as compressed:
        inner = _Hashed(compressed)
        # USTAR with PAX for what it can't say: no time, no user, nothing of this machine
        with tarfile.open(fileobj=cast("BinaryIO", inner), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for member in sorted(members, key=lambda member: member.path.encode("utf-8")):
                archive.addfile(_described(member), cast("BinaryIO", member.content()))
    return SourceArchive(outer.size, inner.hash.hexdigest(), b64encode(outer.hash.digest()).decode("ascii"))


def _described(member: Member) -> tarfile.TarInfo:
    info = tarfile.TarInfo(member.path)
    info.size = member.size
    info.mode = 0o755 if member.executable else 0o644
    info.mtime = 0
    return info


class _Writable(Protocol):
    def write(self, data: bytes, /) -> int: ...


class _Hashed:
    """What is written to it goes on to `to`."""

    def __init__(self, to: _Writable) -> None:
        self.hash = hashlib.sha256()
        self.size = 0
        self._to = to

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self.size += len(data)
        return self._to.write(data)

    def flush(self) -> None:
        """Nothing is held back."""
