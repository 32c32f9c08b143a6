"""Where the cluster keeps what it builds, and where it lives while it runs."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BINARIES = Path(__file__).resolve().parent / "binaries"
ROOT = Path(__file__).resolve().parents[2]


def cache() -> Path:
    """What is built once and used by all checkouts: ~/.cache/muster/cluster. It exists afterwards."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "muster" / "cluster"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def used(entry: Path) -> None:
    """Remember that a thing in the cache is still of use (prune.py)."""
    os.utime(entry)


@contextmanager
def alone_in_cache() -> Iterator[None]:
    """Two that build at the same time: the second waits, and then finds the first one's work."""
    with (cache() / "lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def state() -> "State":
    """Where the machine's one cluster lives: ~/.local/state/muster/cluster."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "muster" / "cluster"
    return State(folder)


@dataclass(frozen=True)
class State:
    """The folder of a running cluster; nothing of it outlives the cluster, except the logs of a start that failed."""

    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, for kubectl and for clients in tests."""
        return self.folder / "kubeconfig"

    @property
    def logs(self) -> Path:
        """One file a component."""
        return self.folder / "logs"

    @property
    def keys(self) -> Path:
        """Certificates and keys of the control plane."""
        return self.folder / "keys"

    @property
    def etcd(self) -> Path:
        """The cluster's data."""
        return self.folder / "etcd"

    def node(self, name: str) -> Path:
        """What belongs to one node: its configuration, images and containers."""
        return self.folder / "nodes" / name
