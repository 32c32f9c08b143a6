"""Installs and runs the SageMaker SDKs 2 and 3, with which tests compare muster.

Each SDK is installed once into its own folder and runs in child processes, which don't get this machine's AWS settings.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from muster_dev.cache import install_folder
from muster_dev.paths import REQUIREMENTS, ROOT

LOCK = "sagemaker-sdk.txt"
"""SDK 2, with its estimators."""

LOCK_3 = "sagemaker-sdk-3.txt"
"""SDK 3, with ModelTrainer."""


def install_sdk(lock: str = LOCK) -> Path:
    """Return the folder with the SDK and its dependencies. Installs them if necessary."""
    return install_folder(lock.removesuffix(".txt"), lock)


def read_sdk_version() -> str:
    """Return SDK 2's version, such as "sagemaker 2.257.7"."""
    match = re.search(r"^sagemaker==(\S+)", (REQUIREMENTS / LOCK).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise LookupError(f"requirements/{LOCK} names no sagemaker: run `make lock`")
    return f"sagemaker {match.group(1)}"


def run_script(script: Path, input_text: str, lock: str = LOCK) -> str:
    """Run `script` with the SDK of `lock`, and `input_text` as its input.

    Returns the text in the file that its argument names.

    The script can't use standard output, because the SDK logs there. Raises `CalledProcessError` if the script fails.
    """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output_file:
        subprocess.run(
            # Without `site`, only the SDK's folder, the tests' and the standard library are importable.
            [sys.executable, "-S", "-W", "ignore", str(script), output_file.name],
            check=True,
            input=input_text,
            stdout=subprocess.DEVNULL,
            text=True,
            env=build_sdk_environment(lock),
        )
        return output_file.read()


def build_sdk_environment(lock: str) -> dict[str, str]:
    """Return the environment of the SDK's processes."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join((str(install_sdk(lock)), str(ROOT / "tests"))),
        "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
        # The credentials are invalid, and the configuration files of this machine's user are not read.
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": os.devnull,
    }
