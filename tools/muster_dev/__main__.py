"""Runs the commands of `make setup`, `make lock` and `make check`.

This module loads in any Python 3, so that it can report that the Python is too old. Then it imports the other modules,
which need Python 3.11.
"""

from __future__ import annotations

import shutil
import sys

NEWER_PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")


def main() -> int:
    """Run the command that `sys.argv` names; return the exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036 - report an older Python
        print(describe_old_python(), file=sys.stderr)
        return 2
    from muster_dev import check, generated_files, image_facts, lock, release, setup  # noqa: PLC0415 - an older Python can't read them

    commands = {
        "setup": setup.main,
        "lock": lock.main,
        "check": check.main,
        "generate": generated_files.main,
        "image-facts": image_facts.main,
        "check-release": release.check_release,
        "set-chart-image": release.set_chart_image,
    }
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in commands:
        print(f"muster_dev: expected one of {', '.join(commands)}; found {name!r}", file=sys.stderr)
        return 2
    return commands[name](sys.argv[2:])


def describe_old_python() -> str:
    """Return the error message for an old Python. It names a newer Python on this machine if there is one."""
    available = [name for name in NEWER_PYTHONS if shutil.which(name)]
    remedy = (
        f"name a newer one: make PYTHON={available[0]} ..." if available else "install one: apt-get install python3.11"
    )
    version = ".".join(str(part) for part in sys.version_info[:3])
    return f"muster needs Python 3.11 or newer; {sys.executable} is {version}. To continue, {remedy}"


if __name__ == "__main__":
    sys.exit(main())
