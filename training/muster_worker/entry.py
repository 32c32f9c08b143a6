"""The archive's sub-commands: `node`, the agent; `rank`, `log-rank`, wrappers of ranks; `remote`, `network-check`."""

from __future__ import annotations

import os
import signal
import sys

from muster_worker.exit_codes import STOPPED_EXIT_CODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

USAGE_EXIT_CODE = 64
"""sysexits.h: the command was used wrongly."""


def main(arguments: Sequence[str]) -> int:
    """Run a sub-command; the exit code."""
    # each imports its own: a rank's wrapper starts once for every rank and has no use for the agent's modules
    if arguments and arguments[0] == "rank":
        from muster_worker.rank import wrapper

        wrapper.main(arguments[1:])
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
        # A container's process 1 ignores SIGTERM unless it listens, and the agent takes a moment until it does: a pod
        # that is deleted then would be waited for as long as its grace is.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(STOPPED_EXIT_CODE))
        from muster_worker.agent import start

        return start.main(arguments[1:])
    sys.stderr.write("usage: agent.pyz node --help | agent.pyz rank -- COMMAND...\n")
    return USAGE_EXIT_CODE
