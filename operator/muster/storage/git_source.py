"""One commit of a git repository as files.

Done by dulwich and not by git: no program, no shell, no configuration of anybody, no hooks, no filters, no submodules;
nothing is checked out but what is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import BinaryIO
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
from muster.storage.one_host import LeadsElsewhere, pool_for
from muster.storage.source_files import MAX_BYTES, MAX_FILES, SourceFile, check_bytes, checked, refused
from muster.storage.trouble import GIT_COMMIT_NOT_FOUND, GIT_UNREACHABLE, StorageTrouble

ORIGIN = "spec.source.git"

MAX_PACK_BYTES = MAX_BYTES
"""Of what the server sends, which is read into memory."""

MAX_UNPACKED_BYTES = 2 * MAX_BYTES
"""Of all that was sent: the files, and what they are made of."""

MAX_OBJECTS = 4 * MAX_FILES
"""Files and folders of one commit."""

TIMEOUT_SECONDS = 60.0
"""For a connection, and for the next bytes of each answer."""

_FETCH_ERRORS = (
    *(GitProtocolError, ChecksumMismatch, LeadsElsewhere, urllib3.exceptions.HTTPError),
    # what dulwich's parsers make of an answer that isn't git's
    *(OSError, ValueError, AssertionError, KeyError, EOFError),
)


def fetch_commit(source: GitSource) -> dict[str, SourceFile]:
    """The commit's files below `source.path`. Raises `StorageTrouble`. Blocks."""
    store = MemoryObjectStore()
    _fetch(source, store)
    name = ObjectID(source.commit.encode("ascii"))
    commit = found(store, name)
    if not isinstance(commit, Commit):
        raise StorageTrouble(
            GIT_COMMIT_NOT_FOUND, f"{ORIGIN}.commit: {source.commit} is no commit of {source.url}, or not pushed"
        )
    files: dict[str, SourceFile] = {}
    size = 0
    for path, file in files_of(store, tree_below(store, commit.tree, source.path, ORIGIN), ORIGIN):
        size += len(file.content)
        check_bytes(size, ORIGIN)
        if len(files) == MAX_FILES:
            raise refused(ORIGIN, f"it has more than {MAX_FILES} files")
        files[path] = file
    checked(files, ORIGIN)
    return files


def _fetch(source: GitSource, store: MemoryObjectStore) -> None:
    pack, commit, abort = store.add_pack()
    try:
        _ask(source, pack)
        if pack.tell():
            check_pack(pack, MAX_UNPACKED_BYTES, MAX_OBJECTS)
        commit()
    except NotGitRepository:
        abort()
        raise _unreachable(source, "there is no repository that can be read without a password") from None
    except TooLarge:
        abort()
        raise refused(ORIGIN, f"the commit has more than {MAX_BYTES // 2**20} MiB or {MAX_FILES} files") from None
    except _FETCH_ERRORS as error:
        abort()
        # then the commit isn't in the store
        if "not our ref" not in str(error):
            raise _unreachable(source, str(error) or type(error).__name__) from None
    except BaseException:
        abort()
        raise


def _ask(source: GitSource, pack: BinaryIO) -> None:
    """Have the commit written to `pack`, without those before it."""
    address = urlsplit(source.url)
    host = f"{address.scheme}://{address.netloc}"
    name = ObjectID(source.commit.encode("ascii"))
    with pool_for(source.url) as pool:
        client = Urllib3HttpGitClient(host, pool_manager=pool, thin_packs=False, quiet=True, timeout=TIMEOUT_SECONDS)

        def wants(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's
            # a folder of plain files may name other places for the rest of its files
            if client.dumb:
                raise GitProtocolError("it is no git server, but a folder of files")
            return [name]

        walker = ObjectStoreGraphWalker([], lambda _: [], shallow=set())
        # version 2 lets a server name other places, too
        client.fetch_pack(address.path, wants, walker, _limited(pack), depth=1, protocol_version=0)


def _limited(pack: BinaryIO) -> Callable[[bytes], int]:
    def write(data: bytes) -> int:
        if pack.tell() + len(data) > MAX_PACK_BYTES:
            raise refused(ORIGIN, f"the commit has more than {MAX_PACK_BYTES // 2**20} MiB")
        return pack.write(data)

    return write


def _unreachable(source: GitSource, why: str) -> StorageTrouble:
    return StorageTrouble(GIT_UNREACHABLE, f"{ORIGIN}: {source.url} can't be fetched: {quoted(why)}")
