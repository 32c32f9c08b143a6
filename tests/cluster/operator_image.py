"""The operator's image, built from the project's Dockerfile without Docker: its steps run in a Debian of their own.

Each RUN, with the COPYs before it, is a layer, cached by a hash of its inputs. So after a change of muster's own code
only the last step runs.
"""

import hashlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster import build_room, context, debian, dockerfile
from cluster.dockerfile import Copy, Run, Stage
from cluster.images import PATH, Image
from cluster.packages import Tools
from cluster.places import ROOT, alone_in_cache, cache, used
from cluster.say import CannotGoOn, say

NAME = "cluster.muster.dev/operator"
# The base is always this Debian, whichever Python the Dockerfile names.
PYTHON_IMAGES = "python:"


@dataclass(frozen=True)
class Files:
    """A stage's files: folders of changes over the base's, the first changes first, and a key for all of it."""

    key: str
    layers: tuple[Path, ...]


def provide(tools: Tools) -> Image:
    """Return the image of this tree. Raises CannotGoOn with the last lines of a failed step."""
    with alone_in_cache():
        return built_image(tools, debian.provide(tools))


def built_image(tools: Tools, base: debian.Debian) -> Image:
    """Build the image stage by stage."""
    *stages, final = dockerfile.parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    built: dict[str, Files] = {}
    for stage in stages:
        built[stage.name] = build(tools, stage, below(stage, built, base))
    start = below(final, built, base)
    if len(start.layers) > 1 or any(isinstance(step, Run) or not step.stage for step in final.steps):
        raise CannotGoOn("Dockerfile: the tests' builder knows of the last stage: FROM a bare base, COPY --from only.")
    copied = [packed(tools, built, step) for step in final.steps if isinstance(step, Copy)]
    layers = (base.layer, *copied)
    config = settings(final)
    key = hashed(start.key, *(layer.name for layer in copied), repr(config))
    return Image(f"{NAME}:{key}", layers, config)


def below(stage: Stage, built: Mapping[str, Files], base: debian.Debian) -> Files:
    """Return the base of a stage."""
    if stage.base in built:
        return built[stage.base]
    if stage.base.startswith(PYTHON_IMAGES):
        return Files(base.key, (base.root,))
    raise CannotGoOn(f"Dockerfile: FROM {stage.base}: expected an earlier stage or {PYTHON_IMAGES}...")


def build(tools: Tools, stage: Stage, start: Files) -> Files:
    """Run a stage's steps."""
    files = start
    environment = dict(stage.environment)
    for copies, run in groups(stage.steps):
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            content = context.gather(copies, Path(scratch))
            key = hashed(files.key, content, repr(run), repr(environment))
            layer = cache() / f"stage-{key}"
            if not layer.exists():
                say(f"operator's image: {run.command}")
                begun = time.monotonic()
                build_room.run(tools, files.layers, Path(scratch), run, environment, layer)
                say(f"... {time.monotonic() - begun:.0f} s")
        used(layer)
        files = Files(key, (*files.layers, layer))
    return files


def groups(steps: Sequence[Copy | Run]) -> Iterator[tuple[list[Copy], Run]]:
    """Each RUN with the COPYs before it."""
    copies: list[Copy] = []
    for step in steps:
        if isinstance(step, Run):
            yield copies, step
            copies = []
        elif step.stage:
            raise CannotGoOn("Dockerfile: the tests' builder knows COPY --from in the last stage only.")
        else:
            copies.append(step)
    if copies:
        raise CannotGoOn("Dockerfile: the tests' builder knows no stage that ends with a COPY.")


def packed(tools: Tools, built: Mapping[str, Files], step: Copy) -> Path:
    """Pack a folder of a stage as a layer of the image."""
    [source] = step.sources
    files = built[step.stage]
    layer = cache() / f"layer-{hashed(files.key, source, step.target)}.tar"
    if not layer.exists():
        build_room.pack(tools, files.layers, source, step.target, layer)
    used(layer)
    return layer


def settings(stage: Stage) -> Mapping[str, object]:
    """Return the image's configuration."""
    name, _, path = PATH.partition("=")
    environment = {name: path} | dict(stage.environment)
    return {
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "User": stage.user,
        "WorkingDir": stage.folder,
        "Entrypoint": list(stage.entrypoint),
        "Cmd": list(stage.command),
        "Labels": dict(stage.labels),
    }


def hashed(*parts: str) -> str:
    """Return a short hash of these inputs."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
