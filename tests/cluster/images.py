"""Images without a builder: archives written here and loaded into the nodes, without a pull (`PULL_POLICY`)."""

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.choice import WORKER_IMAGE
from cluster.debian import Debian
from cluster.node_files import PAUSE_IMAGE
from cluster.places import cache
from cluster.programs import Programs

# A Debian with the whole standard library and `ip`; on the user's own cluster the image that the user has named.
PYTHON_IMAGE = os.environ.get(WORKER_IMAGE) or "cluster.muster.dev/python:1"
PULL_POLICY = "IfNotPresent" if os.environ.get(WORKER_IMAGE) else "Never"
PATH = "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """`layers` are tar files; `config` is the container's configuration, in the terms of the image format."""

    name: str
    layers: tuple[Path, ...]
    config: Mapping[str, object]


@contextmanager
def archive(image: Image) -> Iterator[Path]:
    """Yield the image in one file, as `docker save` would write it, inside the block."""
    config = {
        "architecture": architecture(),
        "os": "linux",
        "config": image.config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}" for layer in image.layers]},
    }
    names = [f"{number}.tar" for number, _ in enumerate(image.layers)]
    manifest = [{"Config": "config.json", "RepoTags": [image.name], "Layers": names}]
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        target = Path(scratch) / "image.tar"
        with tarfile.open(target, "w") as written:
            for file, document in (("config.json", config), ("manifest.json", manifest)):
                content = json.dumps(document).encode()
                entry = tarfile.TarInfo(file)
                entry.size = len(content)
                written.addfile(entry, io.BytesIO(content))
            for name, layer in zip(names, image.layers, strict=True):
                written.add(layer, name)
        yield target


def digest(file: Path) -> str:
    """SHA-256, as in image formats."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def architecture() -> str:
    """Return this machine's architecture in the terms of images."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def pause_image(programs: Programs) -> Image:
    """Return the image of every pod's first process, a static program."""
    return programs_image(PAUSE_IMAGE, {"pause": programs.paths["pause"]}, {"Cmd": ["/pause"]})


def programs_image(name: str, programs: Mapping[str, Path], config: Mapping[str, object]) -> Image:
    """Return an image of static programs, by their paths in the image. Its layer is kept beside the first of them."""
    folder = next(iter(programs.values())).parent
    layer = folder / "layer.tar"
    if not layer.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "layer.tar"
            with tarfile.open(made, "w") as written:
                for path, program in programs.items():
                    written.add(program, path)
            made.rename(layer)
    return Image(name, (layer,), config)


def python_image(debian: Debian) -> Image:
    """Return the workers' image."""
    return Image(PYTHON_IMAGE, (debian.layer,), started(["python3"]))


def started(command: Sequence[str]) -> Mapping[str, object]:
    """Return the default configuration of an image."""
    return {"Cmd": list(command), "Env": [PATH]}
