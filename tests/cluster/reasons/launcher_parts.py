"""The parts of a pod that a launcher needs with the workers' image, which has only Python."""

from cluster.mpi.pod_installs import PodInstall, pod_install
from cluster.torch_volume import TorchVolume

MPI = "openmpi5"


def launcher_parts(launcher: str, torch: TorchVolume | None) -> PodInstall | TorchVolume:
    """Return its variables, volumes and mounts: those of torch for torchrun, of Open MPI for MPI, else none."""
    if launcher == "mpi":
        return pod_install(MPI)
    return torch if launcher == "torchrun" and torch is not None else TorchVolume()
