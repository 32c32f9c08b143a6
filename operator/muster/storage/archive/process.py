"""The process that fetches a commit and archives it: `python -m muster.storage.archive.process`.

The parent passes three open files: for the host's data, for the unpacked objects, and for the archive. The process
reads the request from standard input and writes the response to standard output.
"""
# ruff: noqa: PLC0415 - modules that parse the commit are imported after the limits are set

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from muster.api.document import quote
from muster.render.storage.errors import StorageError
from muster.render.storage.git_place import GIT_FIELD
from muster.render.storage.source_archive import Member, SourceArchive, members_of, pack
from muster.render.storage.source_files import SourceFile, source_refused
from muster.storage.archive.confinement import confine, exit_with_parent
from muster.storage.archive.messages import ArchiveRequest, ArchiveResponse, request_from_json, response_to_json

if TYPE_CHECKING:
    from typing import BinaryIO

_BUG_CHARS = 4000


def main(arguments: list[str]) -> None:
    """Fetch and archive a commit; `arguments` are the parent's process id and the descriptors of the three files."""
    parent, *descriptors = map(int, arguments)
    exit_with_parent(parent)
    order = request_from_json(sys.stdin.buffer.read())
    confined = confine(order.limits)
    with (
        os.fdopen(descriptors[0], "r+b") as sent,
        os.fdopen(descriptors[1], "r+b", buffering=0) as objects,
        os.fdopen(descriptors[2], "wb") as archive,
    ):
        answer = _respond(order, confined, sent, objects, archive)
    sys.stdout.buffer.write(response_to_json(answer))


def _respond(
    order: ArchiveRequest,
    confined: bool,  # noqa: FBT001
    sent: BinaryIO,
    objects: BinaryIO,
    archive: BinaryIO,
) -> ArchiveResponse:
    try:
        return ArchiveResponse(confined, archive=_build_archive(order, sent, objects, archive))
    except StorageError as problem:
        return ArchiveResponse(confined, problem=problem)
    except (MemoryError, RecursionError):
        return ArchiveResponse(confined, problem=_memory_error(order))
    except OSError as error:
        return ArchiveResponse(
            confined, problem=source_refused(GIT_FIELD, f"it can't be written: {error.strerror or error}")
        )
    except Exception:  # noqa: BLE001 - the operator logs it
        return ArchiveResponse(confined, bug=traceback.format_exc()[-_BUG_CHARS:])
    except BaseException as error:
        # dulwich parses trees in Rust, which panics without memory
        if type(error).__name__ != "PanicException":
            raise
        return ArchiveResponse(confined, problem=_memory_error(order))


def _memory_error(order: ArchiveRequest) -> StorageError:
    return source_refused(GIT_FIELD, f"reading it takes more than {order.limits.memory_bytes // 2**20} MiB of memory")


def _build_archive(order: ArchiveRequest, sent: BinaryIO, objects_file: BinaryIO, archive: BinaryIO) -> SourceArchive:
    from muster.storage.git.connections import TimedConnections
    from muster.storage.git.objects import GitObjects
    from muster.storage.git.source import FetchOptions, commit_files, download

    download(order.place, FetchOptions(TimedConnections(order.fetch_seconds), order.reach, order.token), sent)
    objects = GitObjects(objects_file)
    files = commit_files(order.place, sent, objects)
    duplicate = min(files.keys() & order.added.keys(), default=None)
    if duplicate is not None:
        raise source_refused("spec.source", f"{quote(duplicate)} is the name of a file that muster adds; rename it")
    repository_files = [
        Member(path, file.place.size, file.executable, lambda place=file.place: objects.open(place))  # type: ignore[misc]
        for path, file in files.items()
    ]
    added = members_of({path: SourceFile(content) for path, content in order.added.items()})
    return pack([*repository_files, *added], archive)


if __name__ == "__main__":
    main(sys.argv[1:])
