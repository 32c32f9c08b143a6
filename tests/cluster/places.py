"""The folders of the cluster's built files and of its state."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BINARIES = Path(__file__).resolve().parent / "binaries"
ROOT = Path(__file__).resolve().parents[2]


def cache() -> Path:
    """Return the built files, shared by all checkouts: ~/.cache/muster/cluster. Creates the folder."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "muster" / "cluster"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def used(entry: Path) -> None:
    """Record a use of an entry in the cache (prune.py)."""
    os.utime(entry)


@contextmanager
def alone_in_cache() -> Iterator[None]:
    """Lock the cache: of two concurrent builds the second waits, and then uses the first one's result."""
    with (cache() / "lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def state() -> "State":
    """Return the state of the machine's one cluster: ~/.local/state/muster/cluster."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "muster" / "cluster"
    return State(folder)


@dataclass(frozen=True)
class State:
    """The folder of a running cluster; it is removed with the cluster, except the logs of a failed start."""

    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, for kubectl and for clients in tests."""
        return self.folder / "kubeconfig"

    @property
    def logs(self) -> Path:
        """One file for each component."""
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
        """Return the files of one node: its configuration, images and containers."""
        return self.folder / "nodes" / name
