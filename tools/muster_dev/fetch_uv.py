"""Downloads a pinned version of uv, the installer, verifies its hash, and stores it outside the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from muster_dev.messages import SetupError, print_step
from muster_dev.paths import REQUIREMENTS, get_cache_folder

PIN_FILE = REQUIREMENTS / "uv.txt"

UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}
"""uv's variables by the names of pip's settings, so that uv uses the mirrors and certificates that pip uses."""


def find_uv() -> Path:
    """Return the path of the pinned uv. pip downloads it if necessary. Raises `SetupError` without pip."""
    version = read_pinned_version()
    folder = get_cache_folder() / f"uv-{version}"
    program = folder / "bin" / "uv"
    if program.is_file():
        return program
    print_step(f"fetching uv {version}, the installer (17 MB), to {folder}")
    # Another process may do the same. Each process fills its own folder, and renaming is atomic.
    with tempfile.TemporaryDirectory(dir=get_cache_folder()) as scratch:
        fetched = Path(scratch) / "uv"
        command = [
            *find_pip(Path(scratch)),
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
        ]
        completed = subprocess.run(
            [*command, "--target", str(fetched), "-r", str(PIN_FILE)],
            check=False,
            env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        )
        if completed.returncode != 0:
            raise SetupError("pip could not fetch uv (see above): is the package index reachable from here?")
        if not program.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            fetched.rename(folder)
    return program


def read_pinned_version() -> str:
    """Return the version in requirements/uv.txt."""
    match = re.search(r"^uv==(\S+)", PIN_FILE.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise SetupError(f"{PIN_FILE} names no version of uv: run `make lock`")
    return match.group(1)


def find_pip(scratch: Path) -> list[str]:
    """Return the command of this Python's pip, or else of pip in a temporary environment below `scratch`."""
    if does_succeed([sys.executable, "-m", "pip", "--version"]):
        return [sys.executable, "-m", "pip"]
    folder = scratch / "pip"
    if does_succeed([sys.executable, "-m", "venv", str(folder)]):
        return [str(folder / "bin" / "python"), "-m", "pip"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    raise SetupError(
        f"{sys.executable} has neither pip nor ensurepip. Install one (Debian: apt-get install python{version}-venv), "
        "or name a Python that has it: make PYTHON=..."
    )


def does_succeed(command: list[str]) -> bool:
    """Whether a command succeeds; its output is discarded."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@lru_cache(maxsize=1)
def build_uv_environment() -> dict[str, str]:
    """Return the environment for uv: a cache outside the checkout, and pip's settings unless uv has its own."""
    settings = {
        **read_pip_settings(),
        # A mirror may be older than the main index, so search both. Hashes protect against wrong files.
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_HTTP_TIMEOUT": "300",
        **os.environ,
        "UV_CACHE_DIR": str(get_cache_folder() / "uv"),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    # Copy files if links are impossible; otherwise uv warns about each.
    if get_cache_folder().stat().st_dev != REQUIREMENTS.stat().st_dev:
        settings["UV_LINK_MODE"] = "copy"
    return settings


def read_pip_settings() -> dict[str, str]:
    """Return pip's index, mirrors and certificate (PIP_*, pip.conf) as uv's variables."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=False, capture_output=True, text=True
    ).stdout
    result = {}
    # pip lists variables first; they have priority over configuration files.
    for name, value in reversed(re.findall(r"^[\w:]+\.([\w-]+)='(.*)'$", listed, re.MULTILINE)):
        if name in UV_NAMES:
            result[UV_NAMES[name]] = " ".join(value.replace("\\n", " ").split())
    links = [link for link in result.pop("UV_FIND_LINKS", "").split() if "://" in link or Path(link).is_dir()]
    return {**result, **({"UV_FIND_LINKS": ",".join(links)} if links else {})}
