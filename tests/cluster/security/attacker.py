"""`python -m cluster.security.attacker`: runs a tenant's attacks until it is stopped.

It is a separate process, so that the attacks don't disturb concurrent measurements. The arguments come as JSON on
standard input; the answers are printed once all finite attacks have ended, and again after a signal to stop.
"""

import json
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cluster.security.attacks import ATTACKS, Prey
from cluster.security.fuzz import fuzz
from cluster.security.tenant import Access, Call, Tenant

FUZZ = "fuzz"


@dataclass(frozen=True)
class Orders:
    """The attacks, the rate of each in requests a second, and their target."""

    access: Access
    names: Sequence[str]
    prey: Prey
    seed: int
    rate: float


@dataclass
class Attacker:
    """Each attack has a thread and a connection."""

    orders: Orders
    answers: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Run until all have ended, or until a signal to stop."""
        threads = [threading.Thread(target=self._carry_out, args=(name,), daemon=True) for name in self.orders.names]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and not self.over.is_set():
                thread.join(0.1)

    def _carry_out(self, name: str) -> None:
        tenant = Tenant(self.orders.access)
        due = time.monotonic()
        for call in _calls(name, self.orders):
            if self.over.wait(max(0.0, due - time.monotonic())):
                return
            due = max(due, time.monotonic() - 1.0) + 1.0 / self.orders.rate
            status = tenant.send(call)
            self.answers[f"{name} {status}"] += 1


def _calls(name: str, orders: Orders) -> Iterator[Call]:
    # One attack's requests don't depend on another's.
    chance = random.Random(f"{name}-{orders.seed}")  # noqa: S311 - reproducible, not secret
    return fuzz(chance, orders.prey) if name == FUZZ else ATTACKS[name](chance, orders.prey)


def main() -> int:
    """Attack."""
    document = json.load(sys.stdin)
    orders = Orders(
        Access(**document["access"]),
        document["names"],
        Prey(**document["prey"]),
        int(document["seed"]),
        float(document["rate"]),
    )
    attacker = Attacker(orders)
    signal.signal(signal.SIGTERM, lambda *_: attacker.over.set())
    attacker.run()
    print(json.dumps(attacker.answers), flush=True)  # noqa: T201 - it is what the program is for
    attacker.over.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
