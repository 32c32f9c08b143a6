"""Get uv, the installer: a pinned version, checked by hash, kept outside the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from muster_dev.places import REQUIREMENTS, cache
from muster_dev.say import GiveUp, say

PIN = REQUIREMENTS / "uv.txt"

FROM_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}
"""pip's settings and uv's names for them: a machine set up for pip (a mirror, a proxy's certificate) just works."""


def uv() -> Path:
    """The path of the pinned uv, fetched with pip when it isn't there yet. Raises `GiveUp` without a pip."""
    version = pinned_version()
    folder = cache() / f"uv-{version}"
    program = folder / "bin" / "uv"
    if program.is_file():
        return program
    say(f"fetching uv {version}, the installer (17 MB), to {folder}")
    # Another make may do the same: each fills a folder of its own, and renaming is all or nothing.
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        fetched = Path(scratch) / "uv"
        command = [*a_pip(Path(scratch)), "install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
        done = subprocess.run(
            [*command, "--target", str(fetched), "-r", str(PIN)],
            check=False,
            env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        )
        if done.returncode != 0:
            raise GiveUp("pip could not fetch uv (see above): is the package index reachable from here?")
        if not program.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            fetched.rename(folder)
    return program


def pinned_version() -> str:
    """The version in requirements/uv.txt."""
    match = re.search(r"^uv==(\S+)", PIN.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise GiveUp(f"{PIN} names no version of uv: run `make lock`")
    return match.group(1)


def a_pip(scratch: Path) -> list[str]:
    """The command of a pip: this Python's own, or one in a throw-away environment under `scratch` (ensurepip)."""
    if works([sys.executable, "-m", "pip", "--version"]):
        return [sys.executable, "-m", "pip"]
    place = scratch / "pip"
    if works([sys.executable, "-m", "venv", str(place)]):
        return [str(place / "bin" / "python"), "-m", "pip"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    raise GiveUp(
        f"{sys.executable} has neither pip nor ensurepip. Install one (Debian: apt-get install python{version}-venv), "
        "or name a Python that has it: make PYTHON=..."
    )


def works(command: list[str]) -> bool:
    """Whether a command ends well; its output is not shown."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """The environment for uv: its cache outside the tree, pip's settings where it has none of its own."""
    settings = {
        **pip_settings(),
        # Mirrors may be behind the main index; hashes keep any of them honest.
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_HTTP_TIMEOUT": "300",
        **os.environ,
        "UV_CACHE_DIR": str(cache() / "uv"),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    # Where files can't be linked they are copied; uv would warn about each.
    if cache().stat().st_dev != REQUIREMENTS.stat().st_dev:
        settings["UV_LINK_MODE"] = "copy"
    return settings


def pip_settings() -> dict[str, str]:
    """pip's index, mirrors and certificate (PIP_*, pip.conf) as uv's variables."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=False, capture_output=True, text=True
    ).stdout
    result = {}
    # pip lists the variables first; they go before what files say.
    for name, value in reversed(re.findall(r"^[\w:]+\.([\w-]+)='(.*)'$", listed, re.MULTILINE)):
        if name in FROM_PIP:
            result[FROM_PIP[name]] = " ".join(value.replace("\\n", " ").split())
    links = [link for link in result.pop("UV_FIND_LINKS", "").split() if "://" in link or Path(link).is_dir()]
    return {**result, **({"UV_FIND_LINKS": ",".join(links)} if links else {})}
