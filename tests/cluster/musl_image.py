"""An image on musl without Python, like Alpine's."""

import tarfile
import tempfile
from pathlib import Path

from cluster.images import Image, started
from cluster.places import cache, used
from support.musl_files import COMMAND, get_musl_root


def musl_image() -> Image:
    """Build the image from the files that the agent's own tests use."""
    files = get_musl_root()
    layer = cache() / f"layer-{files.name}.tar"
    if not layer.exists():
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            made = Path(scratch) / "layer.tar"
            with tarfile.open(made, "w") as written:
                written.add(files, ".", filter=_roots)
            made.rename(layer)
    used(layer)
    return Image(f"cluster.muster.dev/{files.name}:1", (layer,), started(COMMAND))


def _roots(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
