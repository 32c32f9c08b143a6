"""The MPI implementations for pods: Open MPI 4 is in the image, the others are read-only folders of this machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.images import PATH
from support import mpi_installs

AT = "/mpi"
IN_THE_IMAGE = "openmpi4"


@dataclass(frozen=True)
class PodInstall:
    """The parts of a job that make `mpirun` and mpi4py those of one implementation; `bin` is the folder of its
    programs.
    """

    name: str
    bin: str = "/usr/bin"
    env: tuple[dict[str, Any], ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()


def pod_install(name: str) -> PodInstall:
    """Return one of `mpi_installs.NAMES`; download it if necessary."""
    if name == IN_THE_IMAGE:
        return PodInstall(name)
    install = mpi_installs.install(name)
    # in a separate folder: on the machine it is in root's home, which only root may read
    inside = f"{AT}/{name}"
    moved = {key: value.replace(str(install.folder), inside) for key, value in install.environment.items()}
    path = PATH.removeprefix("PATH=")
    variables = {**moved, "PATH": f"{inside}/bin:{path}", "PYTHONPATH": f"{AT}/mpi4py"}
    folders = {name: install.folder, "mpi4py": mpi_installs.install_wheel("mpi4py")}
    return PodInstall(
        name,
        f"{inside}/bin",
        env=tuple({"name": key, "value": value} for key, value in variables.items()),
        volumes=tuple(_volume(folder, path) for folder, path in folders.items()),
        mounts=tuple({"name": folder, "mountPath": f"{AT}/{folder}", "readOnly": True} for folder in folders),
    )


def _volume(name: str, path: Path) -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": str(path), "type": "Directory"}}
