"""The SageMaker SDK for comparisons with muster: installed once into its own folder, and run as child processes.

It has no network and no account: its processes don't get this machine's AWS settings.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from muster_dev.cache import install_folder
from muster_dev.paths import REQUIREMENTS

LOCK = "sagemaker-sdk.txt"


def folder() -> Path:
    """The folder with the SDK and its dependencies; installs it if necessary."""
    return install_folder("sagemaker-sdk", LOCK)


def version() -> str:
    """The SDK's version, as "sagemaker 2.257.7"."""
    match = re.search(r"^sagemaker==(\S+)", (REQUIREMENTS / LOCK).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise LookupError(f"requirements/{LOCK} names no sagemaker: run `make lock`")
    return f"sagemaker {match.group(1)}"


def answer(script: Path, question: str) -> str:
    """Run `script` with the SDK and `question` as its input. Returns what it writes to the file of its argument.

    The standard output is not used, because the SDK logs there. Raises `CalledProcessError` if the script fails.
    """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as written:
        subprocess.run(
            # Without `site`, only the SDK's folder and the standard library are importable.
            [sys.executable, "-S", "-W", "ignore", str(script), written.name],
            check=True,
            input=question,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment(),
        )
        return written.read()


def environment() -> dict[str, str]:
    """The environment of the SDK's processes."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": str(folder()),
        "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
        # Invalid credentials, and no configuration files of this machine's user.
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": os.devnull,
    }
