"""torch for pods: this environment's own, as read-only folders of the machine, because an image with it has 5 GB."""

import site
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import debian, packages

AT = "/torch"


class NoTorch(Exception):
    """Pods can't use it, with the reason."""


@dataclass(frozen=True)
class TorchVolume:
    """The parts of a pod's template; all empty if the image has torch itself."""

    volumes: tuple[dict[str, object], ...] = ()
    mounts: tuple[dict[str, object], ...] = ()
    env: tuple[dict[str, object], ...] = ()


NOTHING = TorchVolume()


def provide() -> TorchVolume:
    """Return the parts that a pod needs to import this environment's packages. Raises NoTorch."""
    ours = f"python{sys.version_info.major}.{sys.version_info.minor}"
    theirs = (debian.provide(packages.provide()).root / "usr/bin/python3").readlink().name
    if ours != theirs:
        raise NoTorch(f"the workers' image has {theirs}, .venv has {ours}, whose torch it can't import")
    return of(folders())


def merge_paths(env: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the variables, with those of the same name joined to one search path, such as PYTHONPATH."""
    values: dict[str, list[str]] = {}
    for each in env:
        values.setdefault(each["name"], []).append(each["value"])
    return [{"name": name, "value": ":".join(parts)} for name, parts in values.items()]


def folders() -> tuple[str, ...]:
    """Folders of modules: this environment's own, and those that it borrows (muster_dev/installed_torch.py)."""
    own = [folder for folder in site.getsitepackages() if Path(folder).is_dir()]
    borrowed = [folder for folder in sys.path if Path(folder).name in {"site-packages", "dist-packages"}]
    return tuple(dict.fromkeys([*own, *borrowed]))


def of(paths: tuple[str, ...]) -> TorchVolume:
    """The first folder has priority."""
    names = [f"torch-{number}" for number, _ in enumerate(paths)]
    return TorchVolume(
        volumes=tuple(
            {"name": name, "hostPath": {"path": path, "type": "Directory"}}
            for name, path in zip(names, paths, strict=True)
        ),
        mounts=tuple({"name": name, "mountPath": f"{AT}/{name}", "readOnly": True} for name in names),
        env=({"name": "PYTHONPATH", "value": ":".join(f"{AT}/{name}" for name in names)},),
    )
