"""Images without a builder: archives written here, loaded into the nodes. Pods use them with imagePullPolicy Never."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cluster.node_files import PAUSE_IMAGE
from cluster.packages import Tools
from cluster.places import cache
from cluster.programs import Programs
from cluster.say import CannotGoOn, say

# A Debian with the whole standard library, and `ip` for looking around.
PYTHON_IMAGE = "cluster.muster.dev/python:1"
PYTHON_PACKAGES = ("python3", "iproute2")
# Nothing that a container reads.
DROPPED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/log")


def write_archive(target: Path, name: str, layer: Path, command: Sequence[str]) -> None:
    """An image of one layer, a tar file, as `docker save` would write it."""
    with layer.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    config = {
        "architecture": architecture(),
        "os": "linux",
        "config": {"Cmd": list(command), "Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(target, "w") as archive:
        for file, document in (("config.json", config), ("manifest.json", manifest)):
            content = json.dumps(document).encode()
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        archive.add(layer, "layer.tar")


def architecture() -> str:
    """This machine's, by the name that images use."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def pause_image(programs: Programs) -> Path:
    """The image of every pod's first process, a static program."""
    program = programs.paths["pause"]
    target = program.parent / "pause.tar"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        layer = Path(scratch) / "layer.tar"
        with tarfile.open(layer, "w") as archive:
            archive.add(program, "pause")
        whole = Path(scratch) / "image.tar"
        write_archive(whole, PAUSE_IMAGE, layer, ["/pause"])
        whole.rename(target)
    return target


def python_image(tools: Tools) -> Path:
    """The workers' image, from the machine's own Debian mirror. Raises CannotGoOn when debootstrap fails."""
    suite, mirror = debian()
    key = hashlib.sha256(repr((PYTHON_IMAGE, PYTHON_PACKAGES, DROPPED, suite)).encode()).hexdigest()[:12]
    target = cache() / f"python-{key}.tar"
    if target.exists():
        return target
    say(f"making the workers' image from {mirror} {suite} (kept in {target})")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        root = Path(scratch) / "root"
        bootstrap(tools, suite, mirror, root)
        for folder in DROPPED:
            shutil.rmtree(root / folder, ignore_errors=True)
            (root / folder).mkdir(parents=True)
        layer = Path(scratch) / "layer.tar"
        subprocess.run(["tar", "--numeric-owner", "-C", str(root), "-cf", str(layer), "."], check=True)
        whole = Path(scratch) / "image.tar"
        write_archive(whole, PYTHON_IMAGE, layer, ["python3"])
        whole.rename(target)
    say(f"made the workers' image in {time.monotonic() - begun:.0f} s, {target.stat().st_size / 1e6:.0f} MB")
    return target


def bootstrap(tools: Tools, suite: str, mirror: str, root: Path) -> None:
    """Run debootstrap. What it mounts is in a namespace of its own and ends with it."""
    include = ",".join(PYTHON_PACKAGES)
    command = [
        *(tools.find("unshare"), "--mount", "--propagation", "private"),
        *(tools.find("debootstrap"), "--variant=minbase", f"--include={include}", suite, str(root), mirror),
    ]
    environment = os.environ | dict(tools.environment)
    # The libraries fetched for containerd are nothing to what runs inside the new root.
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise CannotGoOn(f"debootstrap couldn't make the workers' image:\n{last}")


def debian() -> tuple[str, str]:
    """The release this machine runs, and the mirror that its apt is set to."""
    if shutil.which("apt-get") is None:
        return "stable", "http://deb.debian.org/debian"
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(SITE)", "Identifier: Packages"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    pairs = [line.split() for line in listed]
    # Updates and security have codenames with a suffix.
    for codename, site, *_ in (pair for pair in pairs if len(pair) > 1):
        if "-" not in codename:
            return codename, site
    raise CannotGoOn("apt names no mirror of this machine's release: run `apt-get update` first.")
