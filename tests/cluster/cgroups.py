"""The nodes' branches of the machine's cgroups, in version 1's hierarchies or in version 2's single one."""

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

from cluster.say import CannotGoOn

ROOT = Path("/sys/fs/cgroup")
BRANCH = "muster-cluster"
# A group is busy until the kernel has removed its last process, and there is no event for that.
PAUSE_SECONDS = 0.02


def hierarchies() -> Iterator[Path]:
    """Yield the roots of all mounted hierarchies."""
    if (ROOT / "cgroup.controllers").exists():
        yield ROOT
        return
    # If two controllers are mounted together, one name is a link to the other.
    yield from (folder for folder in ROOT.iterdir() if folder.is_dir() and not folder.is_symlink())


def make(node: str) -> None:
    """Create a node's branch, which its kubelet requires."""
    for root in hierarchies():
        (root / BRANCH / node).mkdir(parents=True, exist_ok=True)
        for folder in (root / BRANCH, root / BRANCH / node):
            inherit(folder)


def inherit(folder: Path) -> None:
    """Enable the parent's resources for a group, which has no CPUs (version 1) or no controllers (version 2)."""
    for name in ("cpuset.mems", "cpuset.cpus"):
        if (folder / name).exists() and not (folder / "cgroup.controllers").exists():
            (folder / name).write_bytes((folder.parent / name).read_bytes())
    controllers = folder / "cgroup.controllers"
    if controllers.exists():
        names = " ".join(f"+{name}" for name in controllers.read_text(encoding="ascii").split())
        (folder / "cgroup.subtree_control").write_text(names, encoding="ascii")


def remove(seconds: float) -> None:
    """Remove all nodes' branches, the innermost groups first. Raises CannotGoOn if one is busy for `seconds`."""
    deadline = time.monotonic() + seconds
    for root in hierarchies():
        for folder, _, _ in os.walk(root / BRANCH, topdown=False):
            remove_group(Path(folder), deadline)


def remove_group(folder: Path, deadline: float) -> None:
    """Remove one group."""
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise CannotGoOn(f"{folder} can't be removed: {error.strerror}") from None
            time.sleep(PAUSE_SECONDS)
        else:
            return
