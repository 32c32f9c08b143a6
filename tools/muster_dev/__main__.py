"""The commands of `make setup`, `make lock` and `make check`.

This module loads in any Python 3, to report that the Python is too old. It imports modules for 3.11 after that check.
"""

from __future__ import annotations

import shutil
import sys

NEWER = ("python3.11", "python3.12", "python3.13", "python3.14")


def main() -> int:
    """Run the command that `sys.argv` names; return the exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036 - report an older Python
        print(too_old(), file=sys.stderr)
        return 2
    from muster_dev import check, generated, image_facts, lock, setup  # noqa: PLC0415 - an older Python can't read them

    commands = {
        "setup": setup.main,
        "lock": lock.main,
        "check": check.main,
        "generate": generated.main,
        "image-facts": image_facts.main,
    }
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in commands:
        print(f"muster_dev: expected one of {', '.join(commands)}; found {name!r}", file=sys.stderr)
        return 2
    return commands[name](sys.argv[2:])


def too_old() -> str:
    """The error for an old Python, with a newer one on this machine if there is one."""
    path = [name for name in NEWER if shutil.which(name)]
    remedy = f"name a newer one: make PYTHON={path[0]} ..." if path else "install one: apt-get install python3.11"
    version = ".".join(str(part) for part in sys.version_info[:3])
    return f"muster needs Python 3.11 or newer; {sys.executable} is {version}. To go on, {remedy}"


if __name__ == "__main__":
    sys.exit(main())
