"""The options of mpirun that a job must not set, for Open MPI and Hydra, grouped by their effect.

The sources for Open MPI are mpirun(1) of 4.1 and prterun(1) of 5. The sources for Hydra (MPICH, Intel MPI) are
`mpiexec -help` of MPICH 5 and "Global Hydra Options" in Intel's Developer Reference. Each option works with one dash
and with two.
"""

from muster_worker.contract.mpi import Mpi

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
_OPEN_MPI_REMOTE = ("launch-agent", "dvm", "personality")
_HYDRA_REMOTE = (
    *("launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rmk", "localhost"),
    *("genvnone", "envnone", "genvlist", "envlist"),  # the environment has the addresses of the ranks' agents
)
_OPEN_MPI_EXIT = ("h", "help", "V", "version", "do-not-launch")
_HYDRA_EXIT = ("h", "help", "V", "version", "info")

MCA_PARAMETERS = (
    *("plm", "plm_rsh_agent", "plm_rsh_args", "plm_ssh_agent", "plm_ssh_args", "orte_rsh_agent", "pls_rsh_agent"),
    *("orte_default_hostfile", "prte_default_hostfile", "orte_default_dash_host"),
    *("orte_launch_agent", "prte_launch_agent"),
)
"""Open MPI's MCA parameters for hosts and the remote shell, with their synonyms in ompi_info.

Parameter files (--tune, --am) may contain them, because muster's values in the environment take precedence.
"""

DO_NOT_LAUNCH_SYNONYMS = ("donotlaunch", "orte_do_not_launch")
"""Synonyms of --do-not-launch: --runtime-options donotlaunch, --mca orte_do_not_launch 1."""

REMOTE_SHELL_VARIABLES = (
    *("OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile"),
    *("OMPI_MCA_orte_rsh_agent", "OMPI_MCA_pls_rsh_agent"),
    *("PRTE_MCA_plm", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_prte_default_hostfile"),
    *("HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC", "HYDRA_HOST_FILE"),
    *("I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC", "I_MPI_HYDRA_HOST_FILE"),
)
"""Variables that images for ssh may set, and that the agent overwrites."""

TWO_VALUE_OPTIONS = ("mca", "gmca", "prtemca", "pmixmca", "genv", "env")
"""Options with two values."""

OPEN_MPI_FAMILY = (Mpi.AUTO, Mpi.OPEN_MPI)
"""Values of `implementation` that may mean Open MPI."""

HYDRA_FAMILY = (Mpi.AUTO, Mpi.INTEL_MPI, Mpi.MPICH)
"""Values of `implementation` that may mean an mpirun of Hydra."""


def list_world_options(implementation: str) -> tuple[str, ...]:
    """Return the options that set the number of ranks and their hosts."""
    return _select_options(implementation, _OPEN_MPI_WORLD, _HYDRA_WORLD)


def list_remote_options(implementation: str) -> tuple[str, ...]:
    """Return the options that set how mpirun starts its daemons on other nodes."""
    return _select_options(implementation, _OPEN_MPI_REMOTE, _HYDRA_REMOTE)


def list_exit_options(implementation: str) -> tuple[str, ...]:
    """Return the options with which mpirun exits with code 0 and starts no rank."""
    return _select_options(implementation, _OPEN_MPI_EXIT, _HYDRA_EXIT)


def is_option(argument: str, names: tuple[str, ...]) -> bool:
    """Whether the argument is one of these options, with one dash or two, with or without `=value`."""
    name = argument.partition("=")[0]
    return name.startswith("-") and name[1:].removeprefix("-") in names


def _select_options(implementation: str, open_mpi: tuple[str, ...], hydra: tuple[str, ...]) -> tuple[str, ...]:
    from_open_mpi = open_mpi if implementation in OPEN_MPI_FAMILY else ()
    options = (*from_open_mpi, *(hydra if implementation in HYDRA_FAMILY else ()))
    return tuple(dict.fromkeys(options))
