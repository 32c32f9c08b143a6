"""`python -m cluster up|down|status|build`: a real two-node Kubernetes on this machine (docs/cluster.md)."""

import argparse
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cluster import choice, interruption, lifecycle, operator_image, places, prune
from cluster.choice import Own
from cluster.places import State
from cluster.say import CannotGoOn, say

# The socket is in the abstract namespace: that is global on the machine, leaves no file, and is released when its
# holder ends.
LOCK = "\0muster-cluster"
INTERRUPTED = 130
LOOK_SECONDS = 0.1
# A short time makes tests fast. Real clusters cache a missing name for 30 s.
DENIAL_SECONDS = 1


@dataclass(frozen=True)
class Asked:
    """The options of the command line."""

    denial_seconds: int
    wait_seconds: float


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    commands: dict[str, Callable[[State, Asked], None]] = {
        "build": build,
        "up": up,
        "down": down,
        "status": status,
    }
    parser = argparse.ArgumentParser(prog="cluster", description="A real two-node Kubernetes on this machine.")
    parser.add_argument("command", choices=commands)
    parser.add_argument(
        "--denial-seconds", type=int, default=DENIAL_SECONDS, help="how long the DNS remembers a missing name"
    )
    parser.add_argument("--if-it-can", action="store_true", help="build nothing where the tests run on another cluster")
    parser.add_argument(
        "--wait-seconds", type=float, default=0, help="how long to wait for another command that is at work"
    )
    chosen = parser.parse_args(arguments)
    if chosen.if_it_can and not isinstance(choice.choose(choice.look()), Own):
        return 0
    # Treat SIGTERM as Ctrl-C: stop what was started.
    interruption.handle_signals()
    try:
        commands[chosen.command](places.state(), Asked(chosen.denial_seconds, chosen.wait_seconds))
    except CannotGoOn as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    return 0


def build(state: State, __: Asked) -> None:
    """Build and download everything, so that a later start takes seconds. A cluster may run at the same time."""
    must_be_root()
    machine, _ = lifecycle.prepare(state)
    operator_image.provide(machine.tools)
    prune.prune()
    say(f"everything is built, in {places.cache()}")


def up(state: State, asked: Asked) -> None:
    """Start the cluster if it doesn't run; print how to use it."""
    must_be_root()
    with alone(asked.wait_seconds):
        if lifecycle.running() and not whole(state):
            say("parts of an earlier cluster are there; taking them down first")
            lifecycle.down(state)
        if lifecycle.running():
            say("it runs already, and stays as it was started")
        else:
            lifecycle.up(state, asked.denial_seconds)
    say("it runs until `make cluster-down`. To use it:")
    sys.stdout.write(f"export KUBECONFIG={state.kubeconfig}\n")


def down(state: State, asked: Asked) -> None:
    """Stop the cluster in any state."""
    must_be_root()
    with alone(asked.wait_seconds):
        lifecycle.down(state)
    say("nothing of it is left on this machine but what was built")


def status(state: State, _: Asked) -> None:
    """Print what runs."""
    result = lifecycle.running()
    for each in result:
        sys.stdout.write(f"{each.pid:>8} {each.name}\n")
    if not result:
        say("there is none; `make cluster` starts one")
    elif whole(state):
        say(f"it runs: export KUBECONFIG={state.kubeconfig}")
    else:
        say("parts of it are missing; `make cluster` starts it anew")


def whole(state: State) -> bool:
    """Whether every component of the cluster runs."""
    names = {found.name for found in lifecycle.running()}
    return names.issuperset(lifecycle.COMPONENTS) and state.kubeconfig.exists()


def must_be_root() -> None:
    """Exit if the user isn't root: namespaces, mounts and cgroups need root."""
    if os.geteuid() != 0:
        raise CannotGoOn("the cluster needs root, for its namespaces, mounts and cgroups: run this as root.")


def alone(wait_seconds: float) -> socket.socket:
    """Lock the machine's one cluster. Raises CannotGoOn if another command holds the lock for too long."""
    lock = socket.socket(socket.AF_UNIX)
    until = time.monotonic() + wait_seconds
    while True:
        try:
            lock.bind(LOCK)
        except OSError:
            if time.monotonic() >= until:
                break
            time.sleep(LOOK_SECONDS)
        else:
            return lock
    lock.close()
    raise CannotGoOn("another command is at work on the cluster of this machine; wait for it to end.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
