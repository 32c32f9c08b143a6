"""Options of mpirun that a job may not set, by what they would undo; those of Open MPI, and those of Hydra's family.

Open MPI: mpirun(1) of 4.1, prterun(1) of 5. Hydra, of MPICH and Intel MPI: `mpiexec -help` of MPICH 5, Intel's
Developer Reference, "Global Hydra Options". All take one dash as well as two.
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
    *("genvnone", "envnone", "genvlist", "envlist"),  # the ranks' agents are found by their environment
)
_OPEN_MPI_END = ("h", "help", "V", "version", "do-not-launch")
_HYDRA_END = ("h", "help", "V", "version", "info")

PARAMETERS = (
    *("plm", "plm_rsh_agent", "plm_rsh_args", "plm_ssh_agent", "plm_ssh_args", "orte_rsh_agent", "pls_rsh_agent"),
    *("orte_default_hostfile", "prte_default_hostfile", "orte_default_dash_host"),
    *("orte_launch_agent", "prte_launch_agent"),
)
"""MCA parameters of Open MPI that name hosts, or how they are reached; also by names of before (ompi_info, synonyms).

Files of parameters (--tune, --am) may have them: the environment, where muster says its own, counts more.
"""

STOPS = ("donotlaunch", "orte_do_not_launch")
"""What else does as --do-not-launch: --runtime-options donotlaunch, --mca orte_do_not_launch 1."""

VARIABLES = (
    *("OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile"),
    *("OMPI_MCA_orte_rsh_agent", "OMPI_MCA_pls_rsh_agent"),
    *("PRTE_MCA_plm", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_prte_default_hostfile"),
    *("HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC", "HYDRA_HOST_FILE"),
    *("I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC", "I_MPI_HYDRA_HOST_FILE"),
)
"""Variables that the agent sets whatever an image's own say: images that were made for ssh have them."""

TWO_VALUES = ("mca", "gmca", "prtemca", "pmixmca", "genv", "env")
"""Options that two words belong to."""

OPEN_MPI_FAMILY = (Mpi.AUTO, Mpi.OPEN_MPI)
"""What may turn out to be an Open MPI."""

HYDRA_FAMILY = (Mpi.AUTO, Mpi.INTEL_MPI, Mpi.MPICH)
"""What may turn out to have a Hydra for its mpirun."""


def world_options(implementation: str) -> tuple[str, ...]:
    """What says how many ranks there are, and where."""
    return _of(implementation, _OPEN_MPI_WORLD, _HYDRA_WORLD)


def way_options(implementation: str) -> tuple[str, ...]:
    """What says how other nodes are reached, and what goes with it."""
    return _of(implementation, _OPEN_MPI_WAY, _HYDRA_WAY)


def end_options(implementation: str) -> tuple[str, ...]:
    """What makes mpirun end with success and no rank started."""
    return _of(implementation, _OPEN_MPI_END, _HYDRA_END)


def is_option(argument: str, names: tuple[str, ...]) -> bool:
    """Whether the argument is one of these options, with one dash or two, maybe with `=value`."""
    name = argument.partition("=")[0]
    return name.startswith("-") and name[1:].removeprefix("-") in names


def _of(implementation: str, open_mpi: tuple[str, ...], hydra: tuple[str, ...]) -> tuple[str, ...]:
    theirs = open_mpi if implementation in OPEN_MPI_FAMILY else ()
    both = (*theirs, *(hydra if implementation in HYDRA_FAMILY else ()))
    return tuple(dict.fromkeys(both))
