"""Running tests side by side, and alone once more what failed of them."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOME_FAILED = 1
NONE_CHOSEN = 5


@dataclass(frozen=True)
class Part:
    """Tests that run together: those in `folders` (none: where pytest looks), with these markers (none: all).

    `beside` is how many files at a time.
    """

    folders: tuple[Path, ...] = ()
    marked: str = ""
    beside: int = 1


def run(part: Part, arguments: Sequence[str]) -> int:
    """Run a part; pytest's exit code, 0 when nothing was chosen of it."""
    if part.marked:
        _say(f"the tests marked: {part.marked}")
    if part.beside == 1:
        return _pytest(part, arguments)
    with tempfile.TemporaryDirectory() as memory:
        remembered = [*arguments, f"--override-ini=cache_dir={memory}"]
        code = _pytest(part, ["-n", str(part.beside), "--dist", "loadfile", *remembered])
        if code != SOME_FAILED:
            return code
        # Many of them give real processes seconds for something. Who really is broken fails alone, too.
        _say("what failed beside others, who share the processors, is run once more, alone: see above what it was")
        return _pytest(part, ["--last-failed", *remembered])


def _say(text: str) -> None:
    sys.stdout.write(f"tests: {text}\n")
    sys.stdout.flush()


def _pytest(part: Part, arguments: Sequence[str]) -> int:
    marked = ["-m", part.marked] if part.marked else []
    command = [sys.executable, "-m", "pytest", "-rs", *map(str, part.folders), *marked, *arguments]
    code = subprocess.run(command, check=False).returncode
    return 0 if code == NONE_CHOSEN else code
