"""The process that fetches a commit and archives it: `python -m muster.storage.archive.process`.

The parent passes three open files: for the host's data, for the unpacked objects, and for the archive. The process
reads the order from standard input and writes the answer to standard output.
"""
# ruff: noqa: PLC0415 - modules that parse the commit are imported after the limits are set

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from muster.api.document import quoted
from muster.render.storage.errors import StorageError
from muster.render.storage.git_place import ORIGIN
from muster.render.storage.source_archive import Member, SourceArchive, members_of, pack
from muster.render.storage.source_files import SourceFile, refused
from muster.storage.archive.confinement import confine, leave_with_parent
from muster.storage.archive.order import ArchiveAnswer, ArchiveOrder, answer_to_json, order_from_json

if TYPE_CHECKING:
    from typing import BinaryIO

_BUG_CHARS = 4000


def main(arguments: list[str]) -> None:
    """Fetch and archive a commit; `arguments` are the parent's process id and the descriptors of the three files."""
    parent, *descriptors = map(int, arguments)
    leave_with_parent(parent)
    order = order_from_json(sys.stdin.buffer.read())
    confined = confine(order.limits)
    with (
        os.fdopen(descriptors[0], "r+b") as sent,
        os.fdopen(descriptors[1], "r+b", buffering=0) as objects,
        os.fdopen(descriptors[2], "wb") as archive,
    ):
        answer = _answer(order, confined, sent, objects, archive)
    sys.stdout.buffer.write(answer_to_json(answer))


def _answer(
    order: ArchiveOrder,
    confined: bool,  # noqa: FBT001
    sent: BinaryIO,
    objects: BinaryIO,
    archive: BinaryIO,
) -> ArchiveAnswer:
    try:
        return ArchiveAnswer(confined, archive=_archive(order, sent, objects, archive))
    except StorageError as problem:
        return ArchiveAnswer(confined, problem=problem)
    except (MemoryError, RecursionError):
        return ArchiveAnswer(confined, problem=_too_much_memory(order))
    except OSError as error:
        return ArchiveAnswer(confined, problem=refused(ORIGIN, f"it can't be written: {error.strerror or error}"))
    except Exception:  # noqa: BLE001 - the operator logs it
        return ArchiveAnswer(confined, bug=traceback.format_exc()[-_BUG_CHARS:])
    except BaseException as error:
        # dulwich parses trees in Rust, which panics when memory runs out
        if type(error).__name__ != "PanicException":
            raise
        return ArchiveAnswer(confined, problem=_too_much_memory(order))


def _too_much_memory(order: ArchiveOrder) -> StorageError:
    return refused(ORIGIN, f"reading it takes more than {order.limits.memory_bytes // 2**20} MiB of memory")


def _archive(order: ArchiveOrder, sent: BinaryIO, objects_file: BinaryIO, archive: BinaryIO) -> SourceArchive:
    from muster.storage.git.line import Line
    from muster.storage.git.objects import GitObjects
    from muster.storage.git.source import Asking, commit_files, download

    download(order.place, Asking(Line(order.fetch_seconds), order.reach, order.token), sent)
    objects = GitObjects(objects_file)
    files = commit_files(order.place, sent, objects)
    taken = min(files.keys() & order.added.keys(), default=None)
    if taken is not None:
        raise refused("spec.source", f"{quoted(taken)} is the name of a file that muster adds; rename it")
    own = [
        Member(path, file.place.size, file.executable, lambda place=file.place: objects.opened(place))  # type: ignore[misc]
        for path, file in files.items()
    ]
    added = members_of({path: SourceFile(content) for path, content in order.added.items()})
    return pack([*own, *added], archive)


if __name__ == "__main__":
    main(sys.argv[1:])
