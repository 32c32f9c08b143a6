"""Run the command as `kubectl muster`: kubectl runs the program `kubectl-muster` on the PATH."""

from __future__ import annotations

from muster.cli.main import main as run


def main() -> None:
    """Run the command, whose usage lines then say `kubectl muster`."""
    run("kubectl muster")


if __name__ == "__main__":
    main()
