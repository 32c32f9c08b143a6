"""Sub-commands of the archive: `node` (the agent), `rank`, `log-rank` and `launcher` (wrappers), and others."""

from __future__ import annotations

import os
import sys

from muster_worker.exit_codes import STOPPED_EXIT_CODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

USAGE_EXIT_CODE = 64
"""sysexits.h: EX_USAGE."""


def main(arguments: Sequence[str]) -> int:
    """Run a sub-command; return its exit code."""
    # Import only the sub-command's modules: every rank starts a wrapper, which doesn't need the agent's.
    if arguments and arguments[0] == "rank":
        from muster_worker.rank import wrapper

        wrapper.main(arguments[1:])
    if arguments and arguments[0] == "launcher":
        from muster_worker.rank import wrapper

        wrapper.run_launcher(arguments[1:])
    if arguments and arguments[0] == "log-rank":
        from muster_worker.sagemaker.log_rank import wrapper as log_wrapper

        log_wrapper.main(arguments[1:])
    if arguments and arguments[0] == "remote":
        from muster_worker.remote import client

        client.main(arguments)
    if arguments and arguments[0] == "network-check":
        from muster_worker.network import check

        return check.main(arguments[1:])
    if arguments and arguments[0] == "node":
        import signal

        # The kernel sends SIGTERM to process 1 of a container only if it has a handler. Exit at once until the agent
        # sets its own handler: otherwise Kubernetes would wait for the whole grace period.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(STOPPED_EXIT_CODE))
        from muster_worker.agent import start

        return start.main(arguments[1:])
    sys.stderr.write("usage: agent.pyz node --help | agent.pyz rank -- COMMAND...\n")
    return USAGE_EXIT_CODE
