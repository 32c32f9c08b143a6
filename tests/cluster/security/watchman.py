"""Observes the operator during an attack: its Lease, its health endpoint, its memory."""

import contextlib
import itertools
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cluster.shared import Kubectl

LOOK_SECONDS = 0.2
HEALTH_SECONDS = 5.0
_LINE = "{.spec.holderIdentity} {.spec.leaseTransitions} {.spec.renewTime}{'\\n'}"


@dataclass
class Watched:
    """The observations. Seconds; memory in bytes, of the pod with the most."""

    holders: set[str] = field(default_factory=set)
    renewed_at: list[float] = field(default_factory=list)
    slowest_health: float = 0.0
    unhealthy: list[str] = field(default_factory=list)
    memory: int = 0

    def longest_without_renewal(self, until: float) -> float:
        """Return the longest time between two renewals, the last of them up to `until` (Unix seconds)."""
        times = [*self.renewed_at, until]
        return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)


@contextlib.contextmanager
def watched(kubectl: Kubectl, system: str, health: Sequence[str], memory: Callable[[], int]) -> Iterator[Watched]:
    """Observe inside the block. `health` are URLs, `memory` returns the current use."""
    seen, over = Watched(), threading.Event()
    lease = kubectl.begin("get", "lease/muster", f"--namespace={system}", "--watch", f"--output=jsonpath={_LINE}")
    threads = [threading.Thread(target=_read, args=(lease, seen), daemon=True)]
    threads += [threading.Thread(target=_ask, args=(url, seen, over), daemon=True) for url in health]
    threads.append(threading.Thread(target=_weigh, args=(memory, seen, over), daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        lease.kill()
        lease.wait()
        for thread in threads:
            thread.join(HEALTH_SECONDS + 1.0)
        assert lease.stdout is not None
        lease.stdout.close()


def _read(lease: "subprocess.Popen[str]", seen: Watched) -> None:
    assert lease.stdout is not None
    for line in lease.stdout:
        # A holder that releases it clears its name.
        *holder, transitions, renewed = line.split()
        seen.holders.add(f"{holder} {transitions}")
        seen.renewed_at.append(datetime.fromisoformat(renewed).timestamp())


def _ask(url: str, seen: Watched, over: threading.Event) -> None:
    while not over.wait(LOOK_SECONDS):
        began = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=HEALTH_SECONDS) as answer:  # noqa: S310 - the operator's own
                answer.read()
        except (OSError, urllib.error.URLError) as error:
            seen.unhealthy.append(str(error))
        seen.slowest_health = max(seen.slowest_health, time.monotonic() - began)


def _weigh(memory: Callable[[], int], seen: Watched, over: threading.Event) -> None:
    while not over.wait(LOOK_SECONDS):
        seen.memory = max(seen.memory, memory())
