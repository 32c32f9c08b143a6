"""The files of a musl image such as Alpine: musl and a shell from Debian, a musl program from the lock.

They are downloaded for the first test that needs them and stored in ~/.cache/muster. Nothing is installed on the
machine.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from muster_dev import fetch_uv
from muster_dev.cache import fill_folder
from muster_dev.paths import REQUIREMENTS
from support import debian_packages

COMMAND = ("ninja", "-f", "/etc/waits.ninja")
"""A musl program of that image, which waits for the shell's command."""

_DEBIAN = ("musl", "busybox-static")
_LOCKED = REQUIREMENTS / "ninja.txt"
_WAITS = "builddir = /tmp\nrule wait\n  command = sleep 600\nbuild never: wait\n"


def get_musl_root() -> Path:
    """Return the image's root; skip the test, with the reason, if the files are not available."""
    if not debian_packages.can_unpack():
        pytest.skip("musl comes as Debian's package: this machine has no apt-get")
    parts = (_LOCKED.read_text(), _DEBIAN, _WAITS, Path("/etc/os-release").read_text())
    return fill_folder(f"musl-{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}", _make)


def _make(root: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        debian_packages.unpack(_DEBIAN, scratch / "tree")
        _fill(root, scratch / "tree", _find_ninja(scratch))


def _fill(root: Path, debian: Path, ninja: Path) -> None:
    for name in ("bin", "etc", "lib", "tmp"):
        (root / name).mkdir(parents=True)
    # under the names that Alpine uses
    [loader] = (debian / "lib").glob("ld-musl-*.so.1")
    shutil.copy(loader, root / "lib" / loader.name)
    (root / "lib" / loader.name.replace("ld-musl-", "libc.musl-")).symlink_to(loader.name)
    shutil.copy(next(debian.rglob("bin/busybox")), root / "bin" / "busybox")
    for name in ("sh", "sleep"):
        (root / "bin" / name).symlink_to("busybox")
    shutil.copy(ninja, root / "bin" / "ninja")
    (root / "etc" / "waits.ninja").write_text(_WAITS)


def _find_ninja(scratch: Path) -> Path:
    target = ("--python-platform", f"{platform.machine()}-unknown-linux-musl", "--python", sys.executable)
    command = [str(fetch_uv.find_uv()), "pip", "install", "--quiet", "--no-deps", "--require-hashes", *target]
    command += ["--target", str(scratch / "ninja"), "-r", str(_LOCKED)]
    subprocess.run(command, check=True, env=fetch_uv.build_uv_environment())
    return scratch / "ninja" / "bin" / "ninja"
