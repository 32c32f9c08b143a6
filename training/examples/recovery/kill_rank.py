"""Run a training script, and kill rank 2 with SIGKILL soon after the first checkpoint of the first attempt.

    python kill_rank.py SCRIPT [ARGUMENTS ...]

It simulates a failure: `kill -9` from another terminal has the same effect.
"""

import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path

RANK = 2
SECONDS_AFTER_CHECKPOINT = 1.5


def kill_after(checkpoint: Path) -> None:
    """Wait for the checkpoint, train some steps more, and kill this process."""
    while not checkpoint.exists():
        time.sleep(0.1)
    time.sleep(SECONDS_AFTER_CHECKPOINT)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Start the thread that kills this rank, and run the script as if Python had been started with it."""
    del sys.argv[0]
    if int(os.environ["RANK"]) == RANK and os.environ["MUSTER_ATTEMPT"] == "1":
        checkpoint = Path(os.environ["MUSTER_CHECKPOINT_DIR"], "checkpoint.pt")
        threading.Thread(target=kill_after, args=[checkpoint], daemon=True).start()
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
