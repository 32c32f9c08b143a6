"""Fetch and archive a commit in a process: `python -m muster.storage.archive.process`.

The parent passes three open files: for the pack from the git host, for the unpacked objects, and for the archive. The
process reads the request from standard input and writes the response to standard output.
"""
# ruff: noqa: PLC0415 - import modules that parse the commit after setting the limits

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from muster.api.document import quote
from muster.render.storage.errors import StorageError
from muster.render.storage.git_folder import GIT_FIELD
from muster.render.storage.source_archive import Member, SourceArchive, make_members, pack_files
from muster.render.storage.source_files import SourceFile, make_source_refused_error
from muster.storage.archive.confinement import apply_limits, exit_with_parent
from muster.storage.archive.messages import ArchiveRequest, ArchiveResponse, decode_request, encode_response

if TYPE_CHECKING:
    from typing import BinaryIO

_MAX_TRACEBACK_CHARS = 4000


def main(arguments: list[str]) -> None:
    """Fetch and archive a commit; `arguments` are the parent's process id and the descriptors of the three files."""
    parent, *descriptors = map(int, arguments)
    exit_with_parent(parent)
    request = decode_request(sys.stdin.buffer.read())
    confined = apply_limits(request.limits)
    with (
        os.fdopen(descriptors[0], "r+b") as pack_file,
        os.fdopen(descriptors[1], "r+b", buffering=0) as objects,
        os.fdopen(descriptors[2], "wb") as archive,
    ):
        response = _respond(request, confined, pack_file, objects, archive)
    sys.stdout.buffer.write(encode_response(response))


def _respond(
    request: ArchiveRequest,
    confined: bool,  # noqa: FBT001
    pack_file: BinaryIO,
    objects: BinaryIO,
    archive: BinaryIO,
) -> ArchiveResponse:
    try:
        return ArchiveResponse(confined, archive=_build_archive(request, pack_file, objects, archive))
    except StorageError as problem:
        return ArchiveResponse(confined, problem=problem)
    except (MemoryError, RecursionError):
        return ArchiveResponse(confined, problem=_make_memory_error(request))
    except OSError as error:
        return ArchiveResponse(
            confined,
            problem=make_source_refused_error(GIT_FIELD, f"the archive can't be written: {error.strerror or error}"),
        )
    except Exception:  # noqa: BLE001 - the operator logs it
        return ArchiveResponse(confined, traceback=traceback.format_exc()[-_MAX_TRACEBACK_CHARS:])
    except BaseException as error:
        # dulwich parses trees in Rust, which panics if there is no memory.
        if type(error).__name__ != "PanicException":
            raise
        return ArchiveResponse(confined, problem=_make_memory_error(request))


def _make_memory_error(request: ArchiveRequest) -> StorageError:
    return make_source_refused_error(
        GIT_FIELD, f"reading the commit takes more than {request.limits.memory_bytes // 2**20} MiB of memory"
    )


def _build_archive(
    request: ArchiveRequest, pack_file: BinaryIO, objects_file: BinaryIO, archive: BinaryIO
) -> SourceArchive:
    from muster.storage.git.connections import TimedConnections
    from muster.storage.git.objects import GitObjects
    from muster.storage.git.source import FetchOptions, download_commit, list_commit_files

    download_commit(
        request.repository,
        FetchOptions(TimedConnections(request.fetch_seconds), request.address_policy, request.token),
        pack_file,
    )
    objects = GitObjects(objects_file)
    files = list_commit_files(request.repository, pack_file, objects)
    duplicate = min(files.keys() & request.added.keys(), default=None)
    if duplicate is not None:
        raise make_source_refused_error(
            "spec.source", f"{quote(duplicate)} is the name of a file that muster adds; rename it"
        )
    repository_files = [
        Member(path, file.location.size, file.executable, lambda location=file.location: objects.open(location))  # type: ignore[misc]
        for path, file in files.items()
    ]
    added_files = make_members({path: SourceFile(content) for path, content in request.added.items()})
    return pack_files([*repository_files, *added_files], archive)


if __name__ == "__main__":
    main(sys.argv[1:])
