"""Paths that somebody else wrote, of files that muster will make: which of them stay below the folder they are for."""

from collections.abc import Iterable

MAX_PATH_BYTES = 1024
MAX_PART_BYTES = 255
"""Of a file's name, by Linux: NAME_MAX."""


def objection(path: str) -> str | None:
    """Why a file of this path may not be made below a folder; None when it may."""
    parts = path.split("/")
    if not path or path.startswith("/"):
        return "it is not the path of a file below a folder"
    if any(part in ("", ".", "..") for part in parts):
        return "it has an empty part, . or .. in it"
    if not path.isprintable() or "\\" in path:
        return "it has a character in it that doesn't show, or a \\"
    if any(len(part.encode()) > MAX_PART_BYTES for part in parts) or len(path.encode()) > MAX_PATH_BYTES:
        return f"no name has more than {MAX_PART_BYTES} bytes and no path more than {MAX_PATH_BYTES}"
    return None


def file_and_folder(paths: Iterable[str]) -> str | None:
    """A path that is a file as well as a folder of another file; None when there is none.

    What is longer than a path may be is passed over: `objection` refuses it.
    """
    by_key = {path for path in paths if len(path) <= MAX_PATH_BYTES}
    for path in sorted(by_key):
        end = path.find("/")
        while end >= 0:
            if path[:end] in by_key:
                return path[:end]
            end = path.find("/", end + 1)
    return None
