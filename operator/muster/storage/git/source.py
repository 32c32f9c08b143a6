"""One commit of a git repository as files.

Done by dulwich and not by git: no program, no shell, no configuration of anybody, no hooks, no filters, no submodules;
nothing is checked out but what is read here.
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
from muster.storage.git.one_host import LeadsElsewhere, pool_for
from muster.storage.git.pack import TooLarge, unpack
from muster.storage.git.reach import AddressRefused, Reach
from muster.storage.git.tree import TreeFile, files_of, tree_below

if TYPE_CHECKING:
    from dulwich.client import HTTPResponse

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
    *(NotGitRepository, GitProtocolError, HTTPUnauthorized, HTTPProxyUnauthorized),
    *(ChecksumMismatch, LeadsElsewhere, urllib3.exceptions.HTTPError, TooLarge),
    # what dulwich's parsers make of an answer that isn't git's
    *(FileFormatException, OSError, ValueError, AssertionError, KeyError, EOFError),
)


@dataclass(frozen=True)
class Asking:
    """How a commit is asked for: over `line`, at addresses that `reach` allows, with a token where there is one."""

    line: Line
    reach: Reach = Reach.ANY
    token: str | None = field(default=None, repr=False)


def fetch_commit(place: GitPlace, token: str | None = None) -> dict[str, SourceFile]:
    """The commit's files below `place.path`, in memory. Raises `StorageError`. Blocks."""
    with TemporaryFile() as pack, closing(GitObjects.in_temporary_file()) as objects:
        download(place, Asking(Line(FETCH_SECONDS), token=token), pack)
        files = commit_files(place, pack, objects)
        return {path: SourceFile(objects.content(file.place), file.executable) for path, file in files.items()}


def download(place: GitPlace, asking: Asking, pack: BinaryIO) -> None:
    """Have the commit sent, without those before it, and written to `pack`. Raises `StorageError`. Blocks."""
    if asking.token is not None and urlsplit(place.url).scheme != "https":
        raise refused(f"{ORIGIN}.url", "a token is sent over https only")
    line = asking.line
    with _explained(place, asking), line:
        _talk(place, asking, pack)
        # what was cut off may look whole
        line.check()


def commit_files(place: GitPlace, pack: BinaryIO, objects: GitObjects) -> dict[str, TreeFile]:
    """The files below the place's path of a commit that was downloaded. Raises `StorageError`. Blocks."""
    with _explained(place):
        # an empty pack is what a host sends of a commit that it doesn't have
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
    """The same where a host repeats what it was sent."""
    token = None if asking is None else asking.token
    if not token:
        return problem
    message = problem.message
    for secret in (token, b64encode(f"{place.username}:{token}".encode()).decode("ascii")):
        message = message.replace(secret, "[token]")
    return StorageError(problem.reason, message, may_pass=problem.may_pass)


def _address_refused(error: BaseException) -> AddressRefused | None:
    """What dulwich and urllib3 have put their own errors around."""
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
    # urllib3 begins with what it tried, and how often
    while isinstance(error.__cause__, urllib3.exceptions.HTTPError):
        error = error.__cause__
    inner = error.args[-1] if error.args else error
    value = inner if isinstance(inner, OSError) else error
    return str(value) or type(value).__name__


def _talk(place: GitPlace, asking: Asking, pack: BinaryIO) -> None:
    """Have the commit written to `pack`."""
    address = urlsplit(place.url)
    with pool_for(place.url, asking.line, asking.reach) as pool:
        client = _Client(place, pool, pack, asking.token)

        def wants(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's
            # a folder of plain files may name other places for the rest of its files
            if client.dumb:
                raise GitProtocolError("it is no git server, but a folder of files")
            return [_name(place)]

        walker = ObjectStoreGraphWalker([], lambda _: [], shallow=set())
        # version 2 lets a server name other places, too
        client.fetch_pack(address.path, wants, walker, _limited(pack), depth=1, protocol_version=0)


class _Client(Urllib3HttpGitClient):
    """Reads what is said until it is too much; `pack` tells how much of it was the commit."""

    def __init__(self, place: GitPlace, pool: urllib3.PoolManager, pack: BinaryIO, token: str | None) -> None:
        address = urlsplit(place.url)
        super().__init__(
            f"{address.scheme}://{address.netloc}",
            pool_manager=pool,
            thin_packs=False,
            quiet=True,
            timeout=TIMEOUT_SECONDS,
            # it is sent to this very origin, and pool_for asks no other
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
                raise refused(ORIGIN, f"the host says more than {MAX_TALK_BYTES // 2**20} MiB beside the commit itself")
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
    words = f"{place.commit} is no commit of {place.url}, or not pushed"
    return StorageError(GIT_COMMIT_NOT_FOUND, f"{ORIGIN}.commit: {words}")


def too_slow(place: GitPlace, seconds: float) -> StorageError:
    """The problem with a host that has not sent the commit after so many seconds."""
    host = quoted(urlsplit(place.url).netloc)
    words = f"{host} took more than {seconds / 60:.3g} minutes to send the commit"
    return StorageError(GIT_TOO_SLOW, f"{ORIGIN}: {words}; name a faster one, or put the code into spec.source.s3")


def _denied(place: GitPlace) -> StorageError:
    if place.username is None:
        words = "the host wants a token: put one into a Secret and name it in secretKeyRef"
    else:
        words = f"the host refuses the token of secretKeyRef for user {quoted(place.username)}"
    return StorageError(GIT_ACCESS_DENIED, f"{ORIGIN}: {place.url} can't be fetched: {words}")


def _unreachable(place: GitPlace, why: str) -> StorageError:
    return StorageError(GIT_UNREACHABLE, f"{ORIGIN}: {place.url} can't be fetched: {quoted(why)}")
