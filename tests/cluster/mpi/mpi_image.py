"""An image with Debian's Open MPI 4 and mpi4py: apt installs its packages over the workers' image."""

import hashlib
import subprocess
import tempfile
import time
from pathlib import Path

from cluster import build_room, debian
from cluster.debian import DROPPED, Debian
from cluster.dockerfile import Run
from cluster.images import Image, started
from cluster.packages import Tools
from cluster.places import alone_in_cache, cache, used
from cluster.say import say

PACKAGES = ("openmpi-bin", "python3-mpi4py", "python3-numpy", "python-is-python3")
STEPS = (
    "apt-get -qq update",
    f"DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install {' '.join(PACKAGES)}",
    f"rm -rf {' '.join(f'{folder}/*' for folder in DROPPED)}",
)
# as root, because apt's own user can't access the room
INSTALL = Run(" && ".join(STEPS).replace("apt-get", "apt-get -o APT::Sandbox::User=root"), "/")


def mpi_image(tools: Tools) -> Image:
    """Return the image from the cache, or build it from apt's mirror. Raises CannotGoOn with its last lines."""
    with alone_in_cache():
        base = debian.provide(tools)
        key = hashlib.sha256(f"{base.key} {INSTALL}".encode()).hexdigest()[:12]
        layer = cache() / f"layer-mpi-{key}.tar"
        if not layer.exists():
            _install(tools, base, layer)
        used(layer)
    return Image(f"cluster.muster.dev/mpi:{key}", (base.layer, layer), started(["python3"]))


def _install(tools: Tools, base: Debian, layer: Path) -> None:
    say(f"making an image's layer with {', '.join(PACKAGES)} (kept in {layer})")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        (Path(scratch) / "context").mkdir()
        changes = Path(scratch) / "changes"
        build_room.run(tools, (base.root,), Path(scratch), INSTALL, {}, changes)
        subprocess.run(["tar", "--numeric-owner", "-C", changes, "-cf", layer.with_suffix(".making"), "."], check=True)
        layer.with_suffix(".making").rename(layer)
    say(f"made it in {time.monotonic() - begun:.0f} s, {layer.stat().st_size / 1e6:.0f} MB")
