"""Fetch one commit of a git repository as files.

This module uses dulwich instead of git, so it needs no program, and uses no shell, configuration, hooks or filters.
It reads the files without checking them out.
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
from muster.api.document import quote
from muster.render.storage.errors import (
    GIT_ACCESS_DENIED,
    GIT_COMMIT_NOT_FOUND,
    GIT_TOO_SLOW,
    GIT_UNREACHABLE,
    StorageError,
)
from muster.render.storage.git_folder import GIT_FIELD, GitFolder
from muster.render.storage.source_files import (
    MAX_BYTES,
    MAX_FILES,
    SourceFile,
    check_bytes,
    check_paths,
    make_source_refused_error,
)
from muster.storage.git.address_policy import AddressPolicy, AddressRefused
from muster.storage.git.connections import TimedConnections
from muster.storage.git.host_pool import RedirectRefused, open_pool
from muster.storage.git.objects import GitObjects
from muster.storage.git.pack import TooLarge, unpack
from muster.storage.git.tree import TreeFile, find_tree, list_files

if TYPE_CHECKING:
    from dulwich.client import HTTPResponse

MAX_PACK_BYTES = MAX_BYTES
"""Maximum size of the commit's pack."""

MAX_OVERHEAD_BYTES = 32 * 2**20
"""Maximum size of all other data in the responses. Each branch or tag has about 60 bytes, and more in memory."""

MAX_UNPACKED_BYTES = 2 * MAX_BYTES
"""Maximum size of the unpacked data: the files, and the bases of their deltas."""

MAX_OBJECTS = 4 * MAX_FILES
"""Maximum number of files and folders of one commit."""

TIMEOUT_SECONDS = 60.0
"""The time limit for the next bytes of each response."""

FETCH_SECONDS = 600.0
"""The time limit for the whole commit. The largest commit needs 0.4 MiB/s."""

_FETCH_ERRORS = (
    *(NotGitRepository, GitProtocolError, HTTPUnauthorized, HTTPProxyUnauthorized),
    *(ChecksumMismatch, RedirectRefused, urllib3.exceptions.HTTPError, TooLarge),
    # dulwich's parsers raise these errors for invalid responses.
    *(FileFormatException, OSError, ValueError, AssertionError, KeyError, EOFError),
)


@dataclass(frozen=True)
class FetchOptions:
    """The options of a fetch: its connections, the policy for addresses, and an optional token."""

    connections: TimedConnections
    policy: AddressPolicy = AddressPolicy.ANY
    token: str | None = field(default=None, repr=False)


def fetch_commit(repository: GitFolder, token: str | None = None) -> dict[str, SourceFile]:
    """Return the commit's files below `repository.path`, in memory. Raises `StorageError`. Blocks the thread."""
    with TemporaryFile() as pack, closing(GitObjects.in_temporary_file()) as objects:
        download_commit(repository, FetchOptions(TimedConnections(FETCH_SECONDS), token=token), pack)
        files = list_commit_files(repository, pack, objects)
        return {path: SourceFile(objects.read_content(file.location), file.executable) for path, file in files.items()}


def download_commit(repository: GitFolder, options: FetchOptions, pack: BinaryIO) -> None:
    """Fetch the commit, without its ancestors, and write it to `pack`. Raises `StorageError`. Blocks the thread."""
    if options.token is not None and urlsplit(repository.url).scheme != "https":
        raise make_source_refused_error(f"{GIT_FIELD}.url", "muster sends a token only over https")
    connections = options.connections
    with _translate_errors(repository, options), connections:
        _fetch(repository, options, pack)
        # A truncated pack may look complete.
        connections.check()


def list_commit_files(repository: GitFolder, pack: BinaryIO, objects: GitObjects) -> dict[str, TreeFile]:
    """Return the files below `repository.path` of a downloaded commit. Raises `StorageError`. Blocks the thread."""
    with _translate_errors(repository):
        # A host without the commit sends an empty pack.
        if pack.tell():
            unpack(pack, objects, MAX_UNPACKED_BYTES, MAX_OBJECTS)
        commit = objects.read_commit(_make_object_id(repository))
        if commit is None:
            raise _make_missing_commit_error(repository)
        return _list_files(objects, find_tree(objects, commit.tree, repository.path, GIT_FIELD))


@contextmanager
def _translate_errors(repository: GitFolder, options: FetchOptions | None = None) -> Iterator[None]:
    try:
        yield
    except _FETCH_ERRORS as error:
        if options is not None and options.connections.is_closed:
            raise make_timeout_error(repository, options.connections.seconds) from None
        raise _remove_token(_describe_problem(repository, error), repository, options) from None


def _describe_problem(repository: GitFolder, error: Exception) -> StorageError:
    address = _find_address_error(error)
    if address is not None:
        return make_source_refused_error(f"{GIT_FIELD}.url", str(address))
    if isinstance(error, HTTPUnauthorized) or "unexpected http resp 403" in str(error):
        return _make_access_denied_error(repository)
    if isinstance(error, NotGitRepository):
        access = "without a token" if repository.username is None else "with this token"
        return _make_unreachable_error(repository, f"no repository at this URL can be read {access}")
    if isinstance(error, TooLarge):
        return make_source_refused_error(
            GIT_FIELD, f"the commit has more than {MAX_BYTES // 2**20} MiB or {MAX_FILES} files"
        )
    if "not our ref" in str(error):
        return _make_missing_commit_error(repository)
    return _make_unreachable_error(repository, _find_innermost_message(error))


def _remove_token(problem: StorageError, repository: GitFolder, options: FetchOptions | None) -> StorageError:
    """Remove the token from the problem's message, which may contain the request."""
    token = None if options is None else options.token
    if not token:
        return problem
    message = problem.message
    for secret in (token, b64encode(f"{repository.username}:{token}".encode()).decode("ascii")):
        message = message.replace(secret, "[token]")
    return StorageError(problem.reason, message, is_retryable=problem.is_retryable)


def _find_address_error(error: BaseException) -> AddressRefused | None:
    """Return the `AddressRefused` that errors of dulwich and urllib3 wrap; None if there is none."""
    pending: list[BaseException] = [error]
    while pending:
        current = pending.pop()
        if isinstance(current, AddressRefused):
            return current
        inner = (current.__cause__, *(argument for argument in current.args if isinstance(argument, BaseException)))
        pending += [argument for argument in inner if argument is not None]
        reason = getattr(current, "reason", None)
        pending += [reason] if isinstance(reason, BaseException) else []
    return None


def _find_innermost_message(error: BaseException) -> str:
    # urllib3's message describes only the request and its retries.
    while isinstance(error.__cause__, urllib3.exceptions.HTTPError):
        error = error.__cause__
    inner = error.args[-1] if error.args else error
    value = inner if isinstance(inner, OSError) else error
    return str(value) or type(value).__name__


def _fetch(repository: GitFolder, options: FetchOptions, pack: BinaryIO) -> None:
    """Fetch the commit and write it to `pack`."""
    address = urlsplit(repository.url)
    with open_pool(repository.url, options.connections, options.policy) as pool:
        client = _Client(repository, pool, pack, options.token)

        def wants(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's signature
            # A "dumb" server may direct clients to other URLs for the files.
            if client.dumb:
                raise GitProtocolError("the URL is a folder of files, not a git server")
            return [_make_object_id(repository)]

        walker = ObjectStoreGraphWalker([], lambda _: [], shallow=set())
        # With protocol version 2, a server may direct clients to other URLs.
        client.fetch_pack(address.path, wants, walker, _limit_size(pack), depth=1, protocol_version=0)


class _Client(Urllib3HttpGitClient):
    """A git client that limits the size of all responses, not counting the commit's pack."""

    def __init__(self, repository: GitFolder, pool: urllib3.PoolManager, pack: BinaryIO, token: str | None) -> None:
        address = urlsplit(repository.url)
        super().__init__(
            f"{address.scheme}://{address.netloc}",
            pool_manager=pool,
            thin_packs=False,
            quiet=True,
            timeout=TIMEOUT_SECONDS,
            # The token reaches only this origin, because open_pool allows no other origin.
            username=None if token is None else repository.username or "",
            password=token,
        )
        self._pack = pack
        self._received_bytes = 0

    def _http_request(self, *args: Any, **kwargs: Any) -> tuple[HTTPResponse, Callable[[int], bytes]]:
        answer, read = super()._http_request(*args, **kwargs)

        def read_with_limit(size: int) -> bytes:
            data = read(size)
            self._received_bytes += len(data)
            if self._received_bytes - self._pack.tell() > MAX_OVERHEAD_BYTES:
                raise make_source_refused_error(
                    GIT_FIELD, f"the host sends more than {MAX_OVERHEAD_BYTES // 2**20} MiB in addition to the commit"
                )
            return data

        return answer, read_with_limit


def _limit_size(pack: BinaryIO) -> Callable[[bytes], int]:
    def write(data: bytes) -> int:
        if pack.tell() + len(data) > MAX_PACK_BYTES:
            raise make_source_refused_error(GIT_FIELD, f"the commit has more than {MAX_PACK_BYTES // 2**20} MiB")
        return pack.write(data)

    return write


def _list_files(objects: GitObjects, tree: ObjectID) -> dict[str, TreeFile]:
    files: dict[str, TreeFile] = {}
    size = 0
    for path, file in list_files(objects, tree, GIT_FIELD):
        size += file.location.size
        check_bytes(size, GIT_FIELD)
        if len(files) == MAX_FILES:
            raise make_source_refused_error(GIT_FIELD, f"the commit has more than {MAX_FILES} files")
        problem = file_paths.find_path_problem(path)
        if problem is not None:
            raise make_source_refused_error(GIT_FIELD, f"{quote(path)}: {problem}")
        files[path] = file
    check_paths(files, GIT_FIELD)
    return files


def _make_object_id(repository: GitFolder) -> ObjectID:
    return ObjectID(repository.commit.encode("ascii"))


def _make_missing_commit_error(repository: GitFolder) -> StorageError:
    message = f"{repository.url} has no commit {repository.commit}; push it, or correct the hash"
    return StorageError(GIT_COMMIT_NOT_FOUND, f"{GIT_FIELD}.commit: {message}")


def make_timeout_error(repository: GitFolder, seconds: float) -> StorageError:
    """Return the error for a host that has not sent the commit after `seconds`."""
    host = quote(urlsplit(repository.url).netloc)
    message = f"{host} took more than {seconds / 60:.3g} minutes to send the commit"
    return StorageError(GIT_TOO_SLOW, f"{GIT_FIELD}: {message}; use a faster host, or spec.source.s3")


def _make_access_denied_error(repository: GitFolder) -> StorageError:
    if repository.username is None:
        message = "the host requires a token; put it in a Secret and set secretKeyRef"
    else:
        message = f"the host rejects the token of secretKeyRef for user {quote(repository.username)}"
    return StorageError(GIT_ACCESS_DENIED, f"{GIT_FIELD}: {repository.url} can't be fetched: {message}")


def _make_unreachable_error(repository: GitFolder, why: str) -> StorageError:
    return StorageError(GIT_UNREACHABLE, f"{GIT_FIELD}: {repository.url} can't be fetched: {quote(why)}")
