"""Check that the files that muster creates for users are inside their folder."""

from collections.abc import Iterable

MAX_PATH_BYTES = 1024
MAX_PART_BYTES = 255
"""The maximum length of a file's name on Linux (NAME_MAX)."""


def find_path_problem(path: str) -> str | None:
    """Return the reason why a file below a folder can't have this path; None if it can."""
    parts = path.split("/")
    if not path or path.startswith("/"):
        return "it is not the path of a file below a folder"
    if any(part in ("", ".", "..") for part in parts):
        return "one of its names is empty, `.` or `..`"
    if not path.isprintable() or "\\" in path:
        return "it contains an invisible character or a \\"
    if any(len(part.encode()) > MAX_PART_BYTES for part in parts) or len(path.encode()) > MAX_PATH_BYTES:
        return f"no name has more than {MAX_PART_BYTES} bytes and no path more than {MAX_PATH_BYTES}"
    return None


def find_file_and_folder(paths: Iterable[str]) -> str | None:
    """Return a path that is both a file and the folder of another file, or None.

    Ignore paths that are too long: `find_path_problem` rejects them.
    """
    short_paths = {path for path in paths if len(path) <= MAX_PATH_BYTES}
    for path in sorted(short_paths):
        slash = path.find("/")
        while slash >= 0:
            if path[:slash] in short_paths:
                return path[:slash]
            slash = path.find("/", slash + 1)
    return None
