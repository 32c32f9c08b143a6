"""Run the `muster` command, and convert errors to messages and exit codes."""

from __future__ import annotations

import os
import sys

from muster.cli.errors import BadInput, format_os_error
from muster.cli.garbage_collection import postpone_collections
from muster.distribution import DISTRIBUTION

FAILED = 1
USAGE_ERROR = 2
INTERRUPTED = 130

_CLUSTER_EXTRA = ("kopf", "kubernetes")
_AWS_EXTRA = ("boto3", "botocore", "dulwich")


def main(program: str = "muster") -> None:
    """Run the command and exit with its code: 2 for bad input, and 130 for Ctrl-C before a job starts.

    `program` is the command's name in usage lines.
    """
    try:
        postpone_collections()
        _open_standard_streams()
        # Ctrl-C during the import must not print a stack trace
        from muster.cli.commands import app, keep_only_command  # noqa: PLC0415

        keep_only_command(sys.argv[1:2])
        app(standalone_mode=True, prog_name=program)
    except BadInput as problem:
        _exit_with(f"muster: {problem}", USAGE_ERROR)
    except ModuleNotFoundError as error:
        # The basic installation lacks the clients of Kubernetes and AWS.
        if error.name in _AWS_EXTRA:
            _exit_with(
                f"muster: this command uses AWS or git and needs {error.name}: {_install_command('aws')}", FAILED
            )
        if error.name not in _CLUSTER_EXTRA:
            raise
        _exit_with(f"muster: this command uses a cluster and needs {error.name}: {_install_command('cluster')}", FAILED)
    except OSError as problem:
        # The cause may be a full disk. typer handles a closed pipe.
        _exit_with(f"muster: {format_os_error(problem)}", FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _install_command(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _exit_with(sentence: str, code: int) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.exit(code)


def _open_standard_streams() -> None:
    """Open /dev/null for each standard stream that is closed.

    Otherwise the next file or socket would get the stream's number, and the ranks would use it as a standard stream.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is `number`
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


if __name__ == "__main__":
    main()
