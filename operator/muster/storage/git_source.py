"""One commit of a git repository as files.

Done by dulwich and not by git: no program, no shell, no configuration of anybody, no hooks, no filters, no submodules;
nothing is checked out but what is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

import urllib3
from dulwich.client import Urllib3HttpGitClient
from dulwich.errors import ChecksumMismatch, GitProtocolError, NotGitRepository
from dulwich.object_store import MemoryObjectStore, ObjectStoreGraphWalker
from dulwich.objects import Commit, ObjectID
from dulwich.refs import Ref

from muster.api.document import quoted
from muster.api.source_spec import GitSource
from muster.storage.git_pack import TooLarge, check_pack
from muster.storage.git_tree import files_of, found, tree_below
from muster.storage.line import Line
from muster.storage.one_host import LeadsElsewhere, pool_for
from muster.storage.source_files import MAX_BYTES, MAX_FILES, SourceFile, check_bytes, checked, refused
from muster.storage.trouble import GIT_COMMIT_NOT_FOUND, GIT_TOO_SLOW, GIT_UNREACHABLE, StorageTrouble

if TYPE_CHECKING:
    from dulwich.client import HTTPResponse

ORIGIN = "spec.source.git"

MAX_PACK_BYTES = MAX_BYTES
"""Of the files as the server sends them."""

MAX_TALK_BYTES = 32 * 2**20
"""Of all else that it says. Branches and tags are some 60 bytes each, and more in memory."""

MAX_UNPACKED_BYTES = 2 * MAX_BYTES
"""Of all that was sent: the files, and what they are made of."""

MAX_OBJECTS = 4 * MAX_FILES
"""Files and folders of one commit."""

TIMEOUT_SECONDS = 60.0
"""For the next bytes of each answer."""

FETCH_SECONDS = 600.0
"""For all of them: a commit of the largest size may come at 0.4 MiB/s."""

_FETCH_ERRORS = (
    *(NotGitRepository, GitProtocolError, ChecksumMismatch, LeadsElsewhere, urllib3.exceptions.HTTPError, TooLarge),
    # what dulwich's parsers make of an answer that isn't git's
    *(OSError, ValueError, AssertionError, KeyError, EOFError),
)


def fetch_commit(source: GitSource) -> dict[str, SourceFile]:
    """The commit's files below `source.path`. Raises `StorageTrouble`. Blocks."""
    with closing(ask(source, Line(FETCH_SECONDS))) as sent:
        return sent.files()


@dataclass(frozen=True)
class Sent:
    """What a host sent of a commit, and nobody has looked into: on disk, but for a few MiB."""

    source: GitSource
    pack: BinaryIO
    _store: MemoryObjectStore
    _unpack: Callable[[], None]

    def files(self) -> dict[str, SourceFile]:
        """The commit's files below the source's path, in memory. Raises `StorageTrouble`. Blocks."""
        with _explained(self.source):
            if self.pack.tell():
                check_pack(self.pack, MAX_UNPACKED_BYTES, MAX_OBJECTS)
            self._unpack()
        commit = found(self._store, _name(self.source))
        if not isinstance(commit, Commit):
            raise _no_commit(self.source)
        return _files(self._store, tree_below(self._store, commit.tree, self.source.path, ORIGIN))

    def close(self) -> None:
        """Forget it."""
        self.pack.close()


def ask(source: GitSource, line: Line) -> Sent:
    """Have the commit sent over `line`, without those before it. Raises `StorageTrouble`. Blocks."""
    store = MemoryObjectStore()
    pack, unpack, _ = store.add_pack()
    try:
        with line, _explained(source, line):
            _talk(source, pack, line)
            # what was cut off may look whole
            line.check()
    except BaseException:
        pack.close()
        raise
    return Sent(source, pack, store, unpack)


@contextmanager
def _explained(source: GitSource, line: Line | None = None) -> Iterator[None]:
    try:
        yield
    except _FETCH_ERRORS as error:
        if line is not None and line.is_cut:
            raise _too_slow(source, line) from None
        raise _trouble(source, error) from None


def _trouble(source: GitSource, error: Exception) -> StorageTrouble:
    if isinstance(error, NotGitRepository):
        return _unreachable(source, "there is no repository that can be read without a password")
    if isinstance(error, TooLarge):
        return refused(ORIGIN, f"the commit has more than {MAX_BYTES // 2**20} MiB or {MAX_FILES} files")
    if "not our ref" in str(error):
        return _no_commit(source)
    return _unreachable(source, _said(error))


def _said(error: BaseException) -> str:
    # urllib3 begins with what it tried, and how often
    while isinstance(error.__cause__, urllib3.exceptions.HTTPError):
        error = error.__cause__
    inner = error.args[-1] if error.args else error
    told = inner if isinstance(inner, OSError) else error
    return str(told) or type(told).__name__


def _talk(source: GitSource, pack: BinaryIO, line: Line) -> None:
    """Have the commit written to `pack`."""
    address = urlsplit(source.url)
    with pool_for(source.url, line) as pool:
        client = _Client(f"{address.scheme}://{address.netloc}", pool, pack)

        def wants(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's
            # a folder of plain files may name other places for the rest of its files
            if client.dumb:
                raise GitProtocolError("it is no git server, but a folder of files")
            return [_name(source)]

        walker = ObjectStoreGraphWalker([], lambda _: [], shallow=set())
        # version 2 lets a server name other places, too
        client.fetch_pack(address.path, wants, walker, _limited(pack), depth=1, protocol_version=0)


class _Client(Urllib3HttpGitClient):
    """Reads what is said until it is too much; `pack` tells how much of it was the commit."""

    def __init__(self, host: str, pool: urllib3.PoolManager, pack: BinaryIO) -> None:
        super().__init__(host, pool_manager=pool, thin_packs=False, quiet=True, timeout=TIMEOUT_SECONDS)
        self._pack = pack
        self._heard = 0

    def _http_request(self, *args: Any, **kwargs: Any) -> tuple[HTTPResponse, Callable[[int], bytes]]:
        answer, read = super()._http_request(*args, **kwargs)

        def counted(size: int) -> bytes:
            data = read(size)
            self._heard += len(data)
            if self._heard - self._pack.tell() > MAX_TALK_BYTES:
                raise refused(ORIGIN, f"the host says more than {MAX_TALK_BYTES // 2**20} MiB beside the commit itself")
            return data

        return answer, counted


def _limited(pack: BinaryIO) -> Callable[[bytes], int]:
    def write(data: bytes) -> int:
        if pack.tell() + len(data) > MAX_PACK_BYTES:
            raise refused(ORIGIN, f"the commit has more than {MAX_PACK_BYTES // 2**20} MiB")
        return pack.write(data)

    return write


def _files(store: MemoryObjectStore, tree: ObjectID) -> dict[str, SourceFile]:
    files: dict[str, SourceFile] = {}
    size = 0
    for path, file in files_of(store, tree, ORIGIN):
        size += len(file.content)
        check_bytes(size, ORIGIN)
        if len(files) == MAX_FILES:
            raise refused(ORIGIN, f"it has more than {MAX_FILES} files")
        files[path] = file
    checked(files, ORIGIN)
    return files


def _name(source: GitSource) -> ObjectID:
    return ObjectID(source.commit.encode("ascii"))


def _no_commit(source: GitSource) -> StorageTrouble:
    words = f"{source.commit} is no commit of {source.url}, or not pushed"
    return StorageTrouble(GIT_COMMIT_NOT_FOUND, f"{ORIGIN}.commit: {words}")


def _too_slow(source: GitSource, line: Line) -> StorageTrouble:
    host = quoted(urlsplit(source.url).netloc)
    words = f"{host} took more than {line.seconds / 60:.3g} minutes to send the commit"
    return StorageTrouble(GIT_TOO_SLOW, f"{ORIGIN}: {words}; name a faster one, or put the code into spec.source.s3")


def _unreachable(source: GitSource, why: str) -> StorageTrouble:
    return StorageTrouble(GIT_UNREACHABLE, f"{ORIGIN}: {source.url} can't be fetched: {quoted(why)}")
