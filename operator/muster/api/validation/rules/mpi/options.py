"""Options of mpirun that a job may not set, grouped by their effect; those of Open MPI, and those of Hydra.

Open MPI: mpirun(1) of 4.1, prterun(1) of 5. Hydra, of MPICH and Intel MPI: `mpiexec -help` of MPICH 5, Intel's
Developer Reference, "Global Hydra Options". Each option works with one dash and with two.
"""

from muster_worker.contract.schema import Mpi

_OPEN_MPI_WORLD = (
    *("n", "np", "c", "N", "npernode", "pernode", "npersocket"),
    *("H", "host", "hostfile", "machinefile", "default-hostfile", "add-host", "add-hostfile"),
    *("map-by", "rank-by", "bynode", "byslot", "rankfile", "rf", "nolocal", "app"),
)
_HYDRA_WORLD = (
    *("n", "np", "N", "ppn", "perhost", "grr", "rr", "rankmap"),
    *("f", "host", "hosts", "hostfile", "machine", "machinefile"),
    *("configfile", "nolocal", "skip-launch-node", "order-nodes"),
)
_OPEN_MPI_WAY = ("launch-agent", "dvm", "personality")
_HYDRA_WAY = (
    *("launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rmk", "localhost"),
    *("genvnone", "envnone", "genvlist", "envlist"),  # the ranks find their agents through the environment
)
_OPEN_MPI_END = ("h", "help", "V", "version", "do-not-launch")
_HYDRA_END = ("h", "help", "V", "version", "info")

PARAMETERS = (
    *("plm", "plm_rsh_agent", "plm_rsh_args", "plm_ssh_agent", "plm_ssh_args", "orte_rsh_agent", "pls_rsh_agent"),
    *("orte_default_hostfile", "prte_default_hostfile", "orte_default_dash_host"),
    *("orte_launch_agent", "prte_launch_agent"),
)
"""MCA parameters of Open MPI that name hosts or the remote shell, also under their old names (ompi_info, synonyms).

Parameter files (--tune, --am) may contain them: muster sets its values in the environment, which takes precedence.
"""

STOPS = ("donotlaunch", "orte_do_not_launch")
"""Synonyms of --do-not-launch: --runtime-options donotlaunch, --mca orte_do_not_launch 1."""

VARIABLES = (
    *("OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile"),
    *("OMPI_MCA_orte_rsh_agent", "OMPI_MCA_pls_rsh_agent"),
    *("PRTE_MCA_plm", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_prte_default_hostfile"),
    *("HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC", "HYDRA_HOST_FILE"),
    *("I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC", "I_MPI_HYDRA_HOST_FILE"),
)
"""Variables that the agent overwrites: images made for ssh set them."""

TWO_VALUES = ("mca", "gmca", "prtemca", "pmixmca", "genv", "env")
"""Options with two values."""

OPEN_MPI_FAMILY = (Mpi.AUTO, Mpi.OPEN_MPI)
"""`implementation` may turn out to be Open MPI."""

HYDRA_FAMILY = (Mpi.AUTO, Mpi.INTEL_MPI, Mpi.MPICH)
"""`implementation` may turn out to have Hydra as its mpirun."""


def world_options(implementation: str) -> tuple[str, ...]:
    """Options that set the number and the hosts of the ranks."""
    return _of(implementation, _OPEN_MPI_WORLD, _HYDRA_WORLD)


def way_options(implementation: str) -> tuple[str, ...]:
    """Options that set how mpirun reaches other nodes."""
    return _of(implementation, _OPEN_MPI_WAY, _HYDRA_WAY)


def end_options(implementation: str) -> tuple[str, ...]:
    """Options with which mpirun exits with 0 without starting a rank."""
    return _of(implementation, _OPEN_MPI_END, _HYDRA_END)


def is_option(argument: str, names: tuple[str, ...]) -> bool:
    """Whether the argument is one of these options, with one dash or two, maybe with `=value`."""
    name = argument.partition("=")[0]
    return name.startswith("-") and name[1:].removeprefix("-") in names


def _of(implementation: str, open_mpi: tuple[str, ...], hydra: tuple[str, ...]) -> tuple[str, ...]:
    from_open_mpi = open_mpi if implementation in OPEN_MPI_FAMILY else ()
    both = (*from_open_mpi, *(hydra if implementation in HYDRA_FAMILY else ()))
    return tuple(dict.fromkeys(both))
