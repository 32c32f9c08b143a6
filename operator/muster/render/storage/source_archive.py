"""Pack a job's code as `sourcedir.tar.gz`. The same files give the same bytes with the same build of zlib."""

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
"""The name of the archive, as in the SageMaker SDK."""

_LEVEL = 6
"""The compression level is fixed, because another level would change the bytes."""


@dataclass(frozen=True)
class SourceArchive:
    """An archive in a file: its size in bytes, and two hashes.

    `sha256` is the hash of the uncompressed archive in hexadecimal digits, which doesn't depend on the build of zlib.
    `checksum` is the SHA-256 of the file in Base64, as in Amazon S3.
    """

    size: int
    sha256: str
    checksum: str

    def get_uri(self, folder: S3Uri) -> S3Uri:
        """Return the archive's URI below `folder`. It depends only on the content, so that muster uploads it once."""
        return folder.join_path("source", self.sha256, NAME)


class Content(Protocol):
    """A readable file."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes."""
        ...


@dataclass(frozen=True)
class Member:
    """A file of an archive. `content` opens the file, which has `size` bytes."""

    path: str
    size: int
    executable: bool
    content: Callable[[], Content]


def make_members(files: SourceFiles) -> list[Member]:
    """Convert files in memory to members."""
    return [
        Member(path, len(file.content), file.executable, lambda content=file.content: io.BytesIO(content))  # type: ignore[misc]
        for path, file in files.items()
    ]


def pack_files(members: Iterable[Member], into: BinaryIO) -> SourceArchive:
    """Write an archive of `members` to `into`. Their paths must be valid."""
    outer = _HashingWriter(into)
    # gzip's header has no modification time and no name.
    with gzip.GzipFile(
        filename="", mode="wb", compresslevel=_LEVEL, fileobj=cast("BinaryIO", outer), mtime=0
    ) as compressed:
        inner = _HashingWriter(compressed)
        # The archive has PAX headers only for values that USTAR can't represent, and no times and no users.
        with tarfile.open(fileobj=cast("BinaryIO", inner), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for member in sorted(members, key=lambda member: member.path.encode("utf-8")):
                archive.addfile(_make_tar_info(member), cast("BinaryIO", member.content()))
    return SourceArchive(outer.size, inner.hash.hexdigest(), b64encode(outer.hash.digest()).decode("ascii"))


def _make_tar_info(member: Member) -> tarfile.TarInfo:
    info = tarfile.TarInfo(member.path)
    info.size = member.size
    info.mode = 0o755 if member.executable else 0o644
    info.mtime = 0
    return info


class _Writable(Protocol):
    def write(self, data: bytes, /) -> int: ...


class _HashingWriter:
    """Passes writes to `target` and hashes them."""

    def __init__(self, target: _Writable) -> None:
        self.hash = hashlib.sha256()
        self.size = 0
        self._target = target

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self.size += len(data)
        return self._target.write(data)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""
