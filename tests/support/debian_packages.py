"""Unpacks Debian packages into a folder, without installing them on the machine."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path


def can_unpack() -> bool:
    """Whether this machine can download and unpack Debian packages."""
    return shutil.which("apt-get") is not None and shutil.which("dpkg") is not None


def compute_digest(packages: Sequence[str]) -> str:
    """Return a hash of the packages and of the machine's release."""
    release = Path("/etc/os-release")
    return hashlib.sha256(repr(packages).encode() + (release.read_bytes() if release.exists() else b"")).hexdigest()[
        :12
    ]


def unpack(packages: Sequence[str], folder: Path) -> None:
    """Download the packages and unpack them into `folder`. Raises CalledProcessError with the output of apt or dpkg."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as archives:
        # As root, apt would download as its own user, which may not write to this folder.
        _run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *packages], archives)
        for archive in sorted(Path(archives).glob("*.deb")):
            _run(["dpkg", "-x", str(archive), str(folder)], archives)


def _run(command: list[str], folder: str) -> None:
    subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder)
