"""Fetch one commit of a git repository as files.

This uses dulwich instead of git: no program, shell, configuration, hooks, filters or submodules, and no checkout of
more than the files that are read here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

import urllib3
from dulwich.client import HTTPProxyUnauthorized, HTTPUnauthorized, Urllib3HttpGitClient
from dulwich.errors import ChecksumMismatch, FileFormatException, GitProtocolError, NotGitRepository
from dulwich.object_store import ObjectStoreGraphWalker
from dulwich.objects import ObjectID
from dulwich.refs import Ref

from muster.api import file_paths
from muster.api.document import quoted
from muster.render.storage.errors import (
    GIT_ACCESS_DENIED,
    GIT_COMMIT_NOT_FOUND,
    GIT_TOO_SLOW,
    GIT_UNREACHABLE,
    StorageError,
)
from muster.render.storage.git_place import ORIGIN, GitPlace
from muster.render.storage.source_files import MAX_BYTES, MAX_FILES, SourceFile, check_bytes, check_paths, refused
from muster.storage.git.line import Line
from muster.storage.git.objects import GitObjects
from muster.storage.git.one_host import RedirectRefused, pool_for
from muster.storage.git.pack import TooLarge, unpack
from muster.storage.git.reach import AddressRefused, Reach
from muster.storage.git.tree import TreeFile, files_of, tree_below

if TYPE_CHECKING:
    from dulwich.client import HTTPResponse

MAX_PACK_BYTES = MAX_BYTES
"""Limit of the commit's data as the server sends it."""

MAX_TALK_BYTES = 32 * 2**20
"""Limit of everything else in the responses. Branches and tags have about 60 bytes each, and more in memory."""

MAX_UNPACKED_BYTES = 2 * MAX_BYTES
"""Limit of the unpacked data: the files, and the bases of their deltas."""

MAX_OBJECTS = 4 * MAX_FILES
"""Files and folders of one commit."""

TIMEOUT_SECONDS = 60.0
"""The time limit for the next bytes of each response."""

FETCH_SECONDS = 600.0
"""The time limit for the whole commit: the largest one needs 0.4 MiB/s."""

_FETCH_ERRORS = (
    *(NotGitRepository, GitProtocolError, HTTPUnauthorized, HTTPProxyUnauthorized),
    *(ChecksumMismatch, RedirectRefused, urllib3.exceptions.HTTPError, TooLarge),
    # errors of dulwich's parsers for responses that aren't git's
    *(FileFormatException, OSError, ValueError, AssertionError, KeyError, EOFError),
)


@dataclass(frozen=True)
class Asking:
    """How to fetch a commit: over `line`, from addresses that `reach` allows, with an optional token."""

    line: Line
    reach: Reach = Reach.ANY
    token: str | None = field(default=None, repr=False)


def fetch_commit(place: GitPlace, token: str | None = None) -> dict[str, SourceFile]:
    """Return the commit's files below `place.path`, in memory. Raises `StorageError`. Blocks."""
    with TemporaryFile() as pack, closing(GitObjects.in_temporary_file()) as objects:
        download(place, Asking(Line(FETCH_SECONDS), token=token), pack)
        files = commit_files(place, pack, objects)
        return {path: SourceFile(objects.content(file.place), file.executable) for path, file in files.items()}


def download(place: GitPlace, asking: Asking, pack: BinaryIO) -> None:
    """Fetch the commit, without its ancestors, and write it to `pack`. Raises `StorageError`. Blocks."""
    if asking.token is not None and urlsplit(place.url).scheme != "https":
        raise refused(f"{ORIGIN}.url", "muster sends a token only over https")
    line = asking.line
    with _explained(place, asking), line:
        _talk(place, asking, pack)
        # a truncated pack may look complete
        line.check()


def commit_files(place: GitPlace, pack: BinaryIO, objects: GitObjects) -> dict[str, TreeFile]:
    """Return the files below the place's path of a downloaded commit. Raises `StorageError`. Blocks."""
    with _explained(place):
        # a host sends an empty pack if it doesn't have the commit
        if pack.tell():
            unpack(pack, objects, MAX_UNPACKED_BYTES, MAX_OBJECTS)
        commit = objects.commit(_name(place))
        if commit is None:
            raise _no_commit(place)
        return _files(objects, tree_below(objects, commit.tree, place.path, ORIGIN))


@contextmanager
def _explained(place: GitPlace, asking: Asking | None = None) -> Iterator[None]:
    try:
        yield
    except _FETCH_ERRORS as error:
        if asking is not None and asking.line.is_cut:
            raise too_slow(place, asking.line.seconds) from None
        raise _without_token(_problem(place, error), place, asking) from None


def _problem(place: GitPlace, error: Exception) -> StorageError:
    address = _address_refused(error)
    if address is not None:
        return refused(f"{ORIGIN}.url", str(address))
    if isinstance(error, HTTPUnauthorized) or "unexpected http resp 403" in str(error):
        return _denied(place)
    if isinstance(error, NotGitRepository):
        by_whom = "without a token" if place.username is None else "with this token"
        return _unreachable(place, f"there is no repository that can be read {by_whom}")
    if isinstance(error, TooLarge):
        return refused(ORIGIN, f"the commit has more than {MAX_BYTES // 2**20} MiB or {MAX_FILES} files")
    if "not our ref" in str(error):
        return _no_commit(place)
    return _unreachable(place, _said(error))


def _without_token(problem: StorageError, place: GitPlace, asking: Asking | None) -> StorageError:
    """Remove the token from a message that repeats the request."""
    token = None if asking is None else asking.token
    if not token:
        return problem
    message = problem.message
    for secret in (token, b64encode(f"{place.username}:{token}".encode()).decode("ascii")):
        message = message.replace(secret, "[token]")
    return StorageError(problem.reason, message, may_pass=problem.may_pass)


def _address_refused(error: BaseException) -> AddressRefused | None:
    """Find an `AddressRefused` inside the errors that dulwich and urllib3 wrapped around it."""
    visited: list[BaseException] = [error]
    while visited:
        one = visited.pop()
        if isinstance(one, AddressRefused):
            return one
        inner = (one.__cause__, *(each for each in one.args if isinstance(each, BaseException)))
        visited += [each for each in inner if each is not None]
        reason = getattr(one, "reason", None)
        visited += [reason] if isinstance(reason, BaseException) else []
    return None


def _said(error: BaseException) -> str:
    # urllib3's own message is about the request and its retries
    while isinstance(error.__cause__, urllib3.exceptions.HTTPError):
        error = error.__cause__
    inner = error.args[-1] if error.args else error
    value = inner if isinstance(inner, OSError) else error
    return str(value) or type(value).__name__


def _talk(place: GitPlace, asking: Asking, pack: BinaryIO) -> None:
    """Fetch the commit and write it to `pack`."""
    address = urlsplit(place.url)
    with pool_for(place.url, asking.line, asking.reach) as pool:
        client = _Client(place, pool, pack, asking.token)

        def wants(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's
            # a "dumb" server may send clients to other URLs for the files
            if client.dumb:
                raise GitProtocolError("it is a folder of files, not a git server")
            return [_name(place)]

        walker = ObjectStoreGraphWalker([], lambda _: [], shallow=set())
        # protocol version 2 lets a server send clients to other URLs
        client.fetch_pack(address.path, wants, walker, _limited(pack), depth=1, protocol_version=0)


class _Client(Urllib3HttpGitClient):
    """Limits the size of responses; `pack` counts the commit's part of them."""

    def __init__(self, place: GitPlace, pool: urllib3.PoolManager, pack: BinaryIO, token: str | None) -> None:
        address = urlsplit(place.url)
        super().__init__(
            f"{address.scheme}://{address.netloc}",
            pool_manager=pool,
            thin_packs=False,
            quiet=True,
            timeout=TIMEOUT_SECONDS,
            # sent only to this origin, because pool_for allows no other
            username=None if token is None else place.username or "",
            password=token,
        )
        self._pack = pack
        self._heard = 0

    def _http_request(self, *args: Any, **kwargs: Any) -> tuple[HTTPResponse, Callable[[int], bytes]]:
        answer, read = super()._http_request(*args, **kwargs)

        def counted(size: int) -> bytes:
            data = read(size)
            self._heard += len(data)
            if self._heard - self._pack.tell() > MAX_TALK_BYTES:
                raise refused(
                    ORIGIN, f"the host sends more than {MAX_TALK_BYTES // 2**20} MiB besides the commit itself"
                )
            return data

        return answer, counted


def _limited(pack: BinaryIO) -> Callable[[bytes], int]:
    def write(data: bytes) -> int:
        if pack.tell() + len(data) > MAX_PACK_BYTES:
            raise refused(ORIGIN, f"the commit has more than {MAX_PACK_BYTES // 2**20} MiB")
        return pack.write(data)

    return write


def _files(objects: GitObjects, tree: ObjectID) -> dict[str, TreeFile]:
    files: dict[str, TreeFile] = {}
    size = 0
    for path, file in files_of(objects, tree, ORIGIN):
        size += file.place.size
        check_bytes(size, ORIGIN)
        if len(files) == MAX_FILES:
            raise refused(ORIGIN, f"it has more than {MAX_FILES} files")
        objection = file_paths.objection(path)
        if objection is not None:
            raise refused(ORIGIN, f"{quoted(path)}: {objection}")
        files[path] = file
    check_paths(files, ORIGIN)
    return files


def _name(place: GitPlace) -> ObjectID:
    return ObjectID(place.commit.encode("ascii"))


def _no_commit(place: GitPlace) -> StorageError:
    words = f"{place.url} has no commit {place.commit}; push it, or correct the hash"
    return StorageError(GIT_COMMIT_NOT_FOUND, f"{ORIGIN}.commit: {words}")


def too_slow(place: GitPlace, seconds: float) -> StorageError:
    """The problem with a host that has not sent the commit after `seconds`."""
    host = quoted(urlsplit(place.url).netloc)
    words = f"{host} took more than {seconds / 60:.3g} minutes to send the commit"
    return StorageError(GIT_TOO_SLOW, f"{ORIGIN}: {words}; use a faster host, or put the code into spec.source.s3")


def _denied(place: GitPlace) -> StorageError:
    if place.username is None:
        words = "the host requires a token: put one into a Secret and name it in secretKeyRef"
    else:
        words = f"the host refuses the token of secretKeyRef for user {quoted(place.username)}"
    return StorageError(GIT_ACCESS_DENIED, f"{ORIGIN}: {place.url} can't be fetched: {words}")


def _unreachable(place: GitPlace, why: str) -> StorageError:
    return StorageError(GIT_UNREACHABLE, f"{ORIGIN}: {place.url} can't be fetched: {quoted(why)}")
