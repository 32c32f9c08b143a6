"""`python -m cluster.suite`: the cluster's tests, side by side where they bear it, and what that takes.

Most of them wait most of the time, for pods. Arguments are pytest's; `--long` chooses those that take minutes.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster import choice
from cluster.choice import Own
from cluster.say import say
from cluster.shared import SharedCluster

TESTS = Path(__file__).resolve().parent
SIDE_BY_SIDE = 3
SOME_FAILED = 1
NONE_CHOSEN = 5
WHOLE_RUN = "MUSTER_WHOLE_RUN"
"""Set for the tests that look back: all others have run on this cluster."""


@dataclass(frozen=True)
class Part:
    """Tests that run together. `beside` is how many at a time."""

    marked: str
    beside: int = 1


BEFORE = Part("own")
SHORT = (Part("not own and not alone and not long and not whole", SIDE_BY_SIDE), Part("alone and not long"))
LONG = (Part("long"),)
AFTER = Part("whole")


def main(arguments: Sequence[str]) -> int:
    """Run the tests; 0 when all that ran passed."""
    rest = [argument for argument in arguments if argument != "--long"]
    is_long = len(rest) < len(arguments)
    if not isinstance(choice.choose(choice.look()), Own):
        return run(Part("long" if is_long else "not long"), rest)
    if is_long:
        with kept_up():
            return worst(run(part, rest) for part in LONG)
    codes = [run(BEFORE, rest)]
    with kept_up():
        codes += [run(part, rest) for part in SHORT]
        # Who chose some of the tests does not want to hear what the others would have used.
        if not rest:
            os.environ[WHOLE_RUN] = "yes"
        codes.append(run(AFTER, rest))
    return worst(codes)


@contextmanager
def kept_up() -> Iterator[None]:
    """A cluster that all parts share."""
    cluster = SharedCluster()
    cluster.up()
    try:
        yield
    finally:
        cluster.close()


def run(part: Part, arguments: Sequence[str]) -> int:
    """Run a part; pytest's exit code, 0 when nothing was chosen of it."""
    say(f"the tests marked: {part.marked}")
    if part.beside == 1:
        return pytest(part, arguments)
    with tempfile.TemporaryDirectory() as memory:
        remembered = [*arguments, f"--override-ini=cache_dir={memory}"]
        code = pytest(part, ["-n", str(part.beside), "--dist", "loadfile", *remembered])
        if code != SOME_FAILED:
            return code
        say("what failed beside others, who share the processors, is run once more, alone: see above what it was")
        return pytest(part, ["--last-failed", *remembered])


def pytest(part: Part, arguments: Sequence[str]) -> int:
    """Run pytest on a part."""
    command = [sys.executable, "-m", "pytest", "-rs", str(TESTS), "-m", part.marked, *arguments]
    code = subprocess.run(command, check=False).returncode
    return 0 if code == NONE_CHOSEN else code


def worst(codes: Iterator[int] | Sequence[int]) -> int:
    """0 when all are."""
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
