"""The build's context: the tree's files that git tracks, and new files that it doesn't ignore."""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from cluster.dockerfile import Copy
from cluster.places import ROOT
from cluster.say import CannotGoOn


def gather(copies: Sequence[Copy], scratch: Path) -> str:
    """Copy the files below `scratch`/context to their paths in the root; return a digest of them."""
    folder = scratch / "context"
    folder.mkdir()
    digest = hashlib.sha256()
    for step in copies:
        for source in step.sources:
            for file, target in placed(step, source):
                digest.update(f"{target}\0{file.stat().st_mode & 0o111:o}\0".encode() + file.read_bytes())
                there = folder / target.lstrip("/")
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, there)
    return digest.hexdigest()


def placed(step: Copy, source: str) -> Iterator[tuple[Path, str]]:
    """Each file of a source with its target: a folder's content goes into the target, a file into it or to that
    name.
    """
    names = listed(source)
    if not names:
        raise CannotGoOn(f"Dockerfile: COPY {source}: git knows no such file.")
    for name in names:
        if name != source:
            yield ROOT / name, f"{step.target.rstrip('/')}/{Path(name).relative_to(source)}"
        elif step.target.endswith("/"):
            yield ROOT / name, f"{step.target}{Path(name).name}"
        else:
            yield ROOT / name, step.target


def listed(source: str) -> list[str]:
    """Return the files of a source."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", source]
    names = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split("\0")
    return sorted(name for name in set(names) if (ROOT / name).is_file())
