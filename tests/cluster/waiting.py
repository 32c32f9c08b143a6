"""Waits for components to serve, and checks that they run."""

import os
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from cluster import interruption
from cluster.components import MARK, Component
from cluster.say import CannotGoOn

# On an idle machine all components serve within seconds; two busy cores need more time.
PATIENCE_SECONDS = 120.0
# There is no event for a port that starts to listen or a file that appears: poll this often.
PAUSE_SECONDS = 0.05


def until(ready: Callable[[], bool], component: Component, what: str) -> None:
    """Wait until `ready`. Raises CannotGoOn if the component ends before, or takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        component.check()
        if time.monotonic() > deadline:
            raise CannotGoOn(f"{what} isn't there after {PATIENCE_SECONDS:.0f} s. {component.termination_messages()}")
        time.sleep(PAUSE_SECONDS)
        if threading.current_thread() is threading.main_thread():
            interruption.check()


def serves(url: str, authority: Path | None = None) -> Callable[[], bool]:
    """Whether `url` answers with 200."""
    context = ssl.create_default_context(cafile=authority) if authority else None

    def ask() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=5, context=context) as answer:  # noqa: S310 - our own addresses
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    return ask


def wait_for(kubectl: Sequence[str], condition: str, objects: Sequence[str], component: Component) -> None:
    """Let kubectl wait until the objects have the condition. The error names `component` if they don't."""
    command = [*kubectl, "wait", f"--for={condition}", f"--timeout={PATIENCE_SECONDS:.0f}s", *objects]
    # Ctrl-C can come between its start and the call that would end it. With the mark, `down` ends it, too.
    environment = {**os.environ, MARK: "kubectl"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        component.check()
        raise CannotGoOn(
            f"{' '.join(objects)}: no {condition}: {done.stderr.strip()}. {component.termination_messages()}"
        )
