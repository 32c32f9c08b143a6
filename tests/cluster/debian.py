"""The Debian base of both images, which debootstrap creates, as files and as a layer of an image."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from cluster.packages import Tools
from cluster.places import cache, used
from cluster.say import CannotGoOn, say

# Python with its whole standard library and venv, and `ip` for inspection.
PACKAGES = ("python3", "python3-venv", "iproute2")
# Files that no container reads.
DROPPED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/log")


@dataclass(frozen=True)
class Debian:
    """`key` is a hash of all inputs."""

    key: str
    folder: Path

    @property
    def root(self) -> Path:
        """The folder of the files."""
        return self.folder / "root"

    @property
    def layer(self) -> Path:
        """The tar of the layer."""
        return self.folder / "layer.tar"


def provide(tools: Tools) -> Debian:
    """Return the base from the cache, or build it from the machine's mirror. Raises CannotGoOn if debootstrap fails."""
    suite, mirror = release()
    key = hashlib.sha256(repr((PACKAGES, DROPPED, suite)).encode()).hexdigest()[:12]
    result = Debian(key, cache() / f"base-{key}")
    if result.folder.exists():
        used(result.folder)
        return result
    say(f"making the images' Debian from {mirror} {suite} (kept in {result.folder})")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        made = Debian(key, Path(scratch) / "base")
        made.folder.mkdir()
        bootstrap(tools, suite, mirror, made.root)
        for folder in DROPPED:
            shutil.rmtree(made.root / folder, ignore_errors=True)
            (made.root / folder).mkdir(parents=True)
        subprocess.run(["tar", "--numeric-owner", "-C", str(made.root), "-cf", str(made.layer), "."], check=True)
        made.folder.rename(result.folder)
    say(f"made it in {time.monotonic() - begun:.0f} s, {result.layer.stat().st_size / 1e6:.0f} MB")
    return result


def bootstrap(tools: Tools, suite: str, mirror: str, root: Path) -> None:
    """Run debootstrap in its own mount namespace."""
    command = [
        *(tools.find("unshare"), "--mount", "--propagation", "private"),
        *(tools.find("debootstrap"), "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(root), mirror),
    ]
    environment = os.environ | dict(tools.environment)
    # Programs inside the new root must not use the libraries that were downloaded for containerd.
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise CannotGoOn(f"debootstrap couldn't make the images' Debian:\n{last}")


def release() -> tuple[str, str]:
    """Return the machine's release, and the mirror in its apt configuration."""
    if shutil.which("apt-get") is None:
        return "stable", "http://deb.debian.org/debian"
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(SITE)", "Identifier: Packages"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    named = [line.split() for line in listed]
    # Updates and security have codenames with a suffix.
    for codename, site, *_ in (words for words in named if len(words) > 1):
        if "-" not in codename:
            return codename, site
    raise CannotGoOn("apt names no mirror of this machine's release: run `apt-get update` first.")
