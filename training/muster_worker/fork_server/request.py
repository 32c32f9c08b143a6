"""A request to the fork server: the command and everything that a new process would inherit.

The format is a length, then sections. A section is a count and this number of strings. NUL ends the count and each
string, because arguments and variables contain no NUL. The wrapper of each rank loads this module, so its imports are
few.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C module of `signal`
import os
import resource

from muster_worker.rank.child import STANDARD_ERROR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, FrozenSet, List, Mapping, Sequence, Tuple

LENGTH_BYTES = 8
MAX_BYTES = 8 * 1024 * 1024
"""Linux limits arguments and environment of a process to 6 MiB (execve(2))."""

MAX_FDS = 64
"""The working directory, the standard streams, and what a launcher lets its ranks inherit."""

_LIMITS = tuple(sorted(value for name, value in vars(resource).items() if name.startswith("RLIMIT_")))
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


class Request:
    """The attributes of the process to fork."""

    def __init__(self, sections: Sequence[Sequence[bytes]]) -> None:
        """Raises `ValueError` for sections that `encode` did not write."""
        command, environment, numbers, limits, cpus, signal_mask, ignored_signals, fds, owner_and_namespaces = sections
        self.command = [os.fsdecode(word) for word in command]
        self.environment: Dict[bytes, bytes] = dict(entry.split(b"=", 1) for entry in environment)
        self.umask, self.nice = (int(number) for number in numbers)
        self.limits = [tuple(int(part) for part in entry.split(b":")) for entry in limits]
        self.cpus = frozenset(int(cpu) for cpu in cpus)
        self.signal_mask = frozenset(int(number) for number in signal_mask)
        self.ignored_signals = frozenset(int(number) for number in ignored_signals)
        self.fds = [int(number) for number in fds]
        self.owner_and_namespaces = list(owner_and_namespaces)

    @property
    def variables(self) -> Dict[str, str]:
        """The environment as text."""
        return {os.fsdecode(name): os.fsdecode(value) for name, value in self.environment.items()}


def list_inherited_fds() -> Tuple[int, ...]:
    """Return the descriptors, except the standard streams, that a program would inherit from this process."""
    numbers = (int(name) for name in os.listdir("/proc/self/fd"))
    return tuple(number for number in sorted(numbers) if number > STANDARD_ERROR and _is_inheritable(number))


def _is_inheritable(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:  # the descriptor that lists the folder
        return False


def read_owner_and_namespaces() -> List[bytes]:
    """Return the user, the groups and the namespaces of this process."""
    users = [b"%d" % number for number in (*os.getresuid(), *os.getresgid(), *os.getgroups())]
    return [*users, *(os.fsencode(os.readlink(f"/proc/self/ns/{name}")) for name in _NAMESPACES)]


def encode(
    command: Sequence[str], environment: Mapping[str, str], signal_mask: FrozenSet[int], fds: Sequence[int]
) -> bytes:
    """Encode a request to start `command` as this process would. `fds` are inherited descriptors. Raises `OSError`."""
    umask = os.umask(0)
    os.umask(umask)
    # Every Python ignores SIGPIPE and SIGXFSZ by itself.
    ignored_signals = [
        number
        for number in _signal.valid_signals()
        if _signal.getsignal(number) == _signal.SIG_IGN and number not in (_signal.SIGPIPE, _signal.SIGXFSZ)
    ]
    sections: Sequence[Sequence[bytes]] = (
        [os.fsencode(word) for word in command],
        [os.fsencode(f"{name}={value}") for name, value in environment.items()],
        [b"%d" % umask, b"%d" % os.getpriority(os.PRIO_PROCESS, 0)],
        [b"%d:%d:%d" % (limit, *resource.getrlimit(limit)) for limit in _LIMITS],
        [b"%d" % cpu for cpu in os.sched_getaffinity(0)],
        [b"%d" % number for number in signal_mask],
        [b"%d" % number for number in ignored_signals],
        [b"%d" % number for number in fds],
        read_owner_and_namespaces(),
    )
    body = b"".join(b"%d\0%s" % (len(section), b"".join(item + b"\0" for item in section)) for section in sections)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode(body: bytes) -> Request:
    """Read a request without its length. Raises `ValueError`."""
    items = iter(body.split(b"\0"))
    return Request([[next(items) for _ in range(int(count))] for count in items if count])
