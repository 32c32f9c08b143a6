"""Environment variables that make `mpirun` start its daemons through the agents. Pure.

muster sets the variables of all implementations; each implementation ignores the others' variables. `muster explain`
shows `reason` and `source`. `library_interfaces.py` has the variables for interfaces, `implementations.py` the command
lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Mapping, Optional


@dataclass(frozen=True)
class MpirunSetup:
    """The input of the settings. `remote` is the program that replaces ssh.

    `rank_wrapper` is the path of a rank's wrapper, if a user's own mpirun has to start its ranks with it.
    """

    remote: str
    open_mpi_hosts: str
    hydra_hosts: str
    procs_per_node: int
    is_root: bool
    rank_wrapper: Optional[str] = None


@dataclass(frozen=True)
class Setting:
    """A variable. `value` returns None if it isn't needed. With `overrides_image` it replaces the image's value."""

    name: str
    value: Callable[[MpirunSetup], Optional[str]]
    reason: str
    source: str
    overrides_image: bool = False


def _get_remote_program(setup: MpirunSetup) -> Optional[str]:
    return setup.remote


def _get_open_mpi_hosts(setup: MpirunSetup) -> Optional[str]:
    return setup.open_mpi_hosts


def _get_hydra_hosts(setup: MpirunSetup) -> Optional[str]:
    return setup.hydra_hosts


def _get_procs_per_node(setup: MpirunSetup) -> Optional[str]:
    return str(setup.procs_per_node)


def _get_root_flag(setup: MpirunSetup) -> Optional[str]:
    return "1" if setup.is_root else None


def _get_rank_wrapper(setup: MpirunSetup) -> Optional[str]:
    return setup.rank_wrapper


def _get_rank_wrapper_for_all(setup: MpirunSetup) -> Optional[str]:
    return None if setup.rank_wrapper is None else f"{setup.rank_wrapper}:all"


def _return_constant(text: str) -> Callable[[MpirunSetup], Optional[str]]:
    return lambda _: text


_OPEN_MPI_4 = "Open MPI 4, ompi_info --all"
_OPEN_MPI_5 = "Open MPI 5, prte_info --all"
_MPICH = "MPICH wiki, Using the Hydra Process Manager, Environment settings"
_INTEL = "Intel MPI Library Developer Reference for Linux, Hydra Environment Variables"

SETTINGS = (
    Setting(
        "OMPI_MCA_plm", _return_constant("rsh"), "don't use the launcher of a detected batch system", _OPEN_MPI_4, True
    ),
    Setting(
        "OMPI_MCA_plm_rsh_agent",
        _get_remote_program,
        "Open MPI 4 starts its daemons through the agents",
        _OPEN_MPI_4,
        True,
    ),
    Setting("OMPI_MCA_orte_default_hostfile", _get_open_mpi_hosts, "Open MPI 4's nodes and slots", _OPEN_MPI_4, True),
    Setting("OMPI_MCA_orte_keep_fqdn_hostnames", _return_constant("1"), "host names may contain dots", _OPEN_MPI_4),
    Setting(
        "OMPI_MCA_hwloc_base_binding_policy",
        _return_constant("none"),
        "a training rank has more threads (data loaders) than one core can run",
        "Open MPI FAQ (4 and before), Tuning, Processor affinity; SageMaker's containers do the same",
    ),
    Setting(
        "PRTE_MCA_plm", _return_constant("ssh"), "don't use the launcher of a detected batch system", _OPEN_MPI_5, True
    ),
    Setting(
        "PRTE_MCA_plm_ssh_agent",
        _get_remote_program,
        "Open MPI 5 starts its daemons through the agents",
        _OPEN_MPI_5,
        True,
    ),
    Setting(
        "PRTE_MCA_prte_default_hostfile",
        _get_open_mpi_hosts,
        "Open MPI 5's nodes and slots: without it, all ranks run on one node and mpirun reports success",
        "kubeflow/mpi-operator#842; prte_info --all",
        True,
    ),
    Setting("PRTE_MCA_prte_keep_fqdn_hostnames", _return_constant("1"), "as orte_keep_fqdn_hostnames", _OPEN_MPI_5),
    Setting(
        "PRTE_MCA_hwloc_default_binding_policy",
        _return_constant("none"),
        "as hwloc_base_binding_policy",
        "PRRTE documentation, prte_info --all",
    ),
    Setting(
        "OMPI_MCA_orte_fork_agent",
        _get_rank_wrapper,
        "wraps ranks in any language and checks their world size",
        _OPEN_MPI_4,
    ),
    Setting("PRTE_MCA_odls_base_exec_agent", _get_rank_wrapper, "as orte_fork_agent", _OPEN_MPI_5),
    Setting(
        "I_MPI_GTOOL",
        _get_rank_wrapper_for_all,
        "as orte_fork_agent",
        "Intel MPI Library Developer Reference for Linux, gtool options",
    ),
    Setting("OMPI_ALLOW_RUN_AS_ROOT", _get_root_flag, "many images run as root", "Open MPI, mpirun(1)"),
    Setting("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", _get_root_flag, "Open MPI asks twice", "Open MPI, mpirun(1)"),
    Setting(
        "HYDRA_LAUNCHER", _return_constant("ssh"), "the launcher that accepts another program than ssh", _MPICH, True
    ),
    Setting("HYDRA_LAUNCHER_EXEC", _get_remote_program, "MPICH starts its proxies through the agents", _MPICH, True),
    Setting("HYDRA_HOST_FILE", _get_hydra_hosts, "MPICH's nodes and slots; else all ranks run on one", _MPICH, True),
    Setting(
        "HYDRA_ENV",
        _return_constant("none"),
        "ranks see their own node's variables, not those of node 0, which MPICH would send to all",
        _MPICH,
    ),
    Setting(
        "I_MPI_HYDRA_BOOTSTRAP",
        _return_constant("ssh"),
        "the launcher that accepts another program than ssh",
        _INTEL,
        True,
    ),
    Setting(
        "I_MPI_HYDRA_BOOTSTRAP_EXEC",
        _get_remote_program,
        "Intel MPI starts its proxies through the agents",
        _INTEL,
        True,
    ),
    Setting("I_MPI_HYDRA_HOST_FILE", _get_hydra_hosts, "Intel MPI's nodes and slots", _INTEL, True),
    Setting("I_MPI_PERHOST", _get_procs_per_node, "ranks per node, unless the command line sets them", _INTEL),
)


OLDER_NAMES = ("OMPI_MCA_orte_rsh_agent", "OMPI_MCA_pls_rsh_agent")
"""Synonyms of OMPI_MCA_plm_rsh_agent (ompi_info). If the image sets one of them, it has priority."""


def build_mpirun_variables(setup: MpirunSetup, environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables to set in mpirun's environment."""
    values = {}
    for setting in SETTINGS:
        value = setting.value(setup)
        if value is not None and (setting.overrides_image or setting.name not in environment):
            values[setting.name] = value
    values.update({name: setup.remote for name in OLDER_NAMES if name in environment})
    return values
