"""The SageMaker SDK that muster is compared with: fetched once into a folder of its own, and run as child processes.

It reaches no network and no account: AWS' settings of this machine are not handed on.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from muster_dev.kept_folder import installed
from muster_dev.places import REQUIREMENTS

LOCK = "sagemaker-sdk.txt"


def folder() -> Path:
    """The folder that holds the SDK and what it needs; fetched when it isn't there."""
    return installed("sagemaker-sdk", LOCK)


def version() -> str:
    """Which one it is, as "sagemaker 2.257.7"."""
    match = re.search(r"^sagemaker==(\S+)", (REQUIREMENTS / LOCK).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise LookupError(f"requirements/{LOCK} names no sagemaker: run `make lock`")
    return f"sagemaker {match.group(1)}"


def answer(script: Path, question: str) -> str:
    """What `script` writes to the file that its argument names, run with the SDK and given `question` as its input.

    Not what it prints, where the SDK says what it does. Raises `CalledProcessError` when it fails; it has said why.
    """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as written:
        subprocess.run(
            # Without `site` there is only the SDK's folder beside the standard library.
            [sys.executable, "-S", "-W", "ignore", str(script), written.name],
            check=True,
            input=question,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment(),
        )
        return written.read()


def environment() -> dict[str, str]:
    """What a process of the SDK gets to know."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": str(folder()),
        "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
        # Credentials that are none, and no place to look for others, nor for defaults of this machine's user.
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": os.devnull,
    }
