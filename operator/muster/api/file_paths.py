"""Check paths from users, of files that muster will create: such a path must stay below its folder."""

from collections.abc import Iterable

MAX_PATH_BYTES = 1024
MAX_PART_BYTES = 255
"""Linux's NAME_MAX: the most bytes in a file's name."""


def objection(path: str) -> str | None:
    """Explain why a file of this path may not be created below a folder; None if it may."""
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
    """Return a path that is both a file and the folder of another file; None if there is none.

    Skip paths that are too long: `objection` refuses them.
    """
    by_key = {path for path in paths if len(path) <= MAX_PATH_BYTES}
    for path in sorted(by_key):
        end = path.find("/")
        while end >= 0:
            if path[:end] in by_key:
                return path[:end]
            end = path.find("/", end + 1)
    return None
