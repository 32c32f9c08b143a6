"""The chosen interface in each library's own words: environment variables, and what each of them must not stand beside.

Pure. `muster explain` shows `why` and `source`; nothing here overrules what the job's owner says.

Left alone on purpose: PMIx (`PMIX_MCA_ptl_*`), whose connections stay within a node and need its loopback; MPICH's
MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE, which Hydra sets itself from HYDRA_IFACE and refuses beside a host name of its own;
NCCL_IB_HCA and EFA's devices, which are no TCP interfaces.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Optional, Sequence, Tuple

from muster_worker.contract.schema import Peer


@dataclass(frozen=True)
class Network:
    """What libraries are told of: an interface, the address chosen on it, and whether RDMA devices may be used here.

    `in_files` are names of variables that the image's files set for a library.
    """

    interface: str
    address: str
    rdma: bool = False
    in_files: Tuple[str, ...] = ()

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.address

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return False  # no address yet: `muster explain` has placeholders


@dataclass(frozen=True)
class Setting:
    """A library's variable. `value` is None where it would be wrong. `against` are options that exclude it.

    What begins with a dash is an option of a command line; what doesn't may be a part of a variable's name or a word.
    """

    name: str
    value: Callable[[Network], Optional[str]]
    why: str
    source: str
    against: Tuple[str, ...] = ()


def _name(network: Network) -> Optional[str]:
    return network.interface


def _exact_name(network: Network) -> Optional[str]:
    return f"={network.interface}"


def _unless_loopback(network: Network) -> Optional[str]:
    return None if network.is_loopback else network.interface


def _family(network: Network) -> Optional[str]:
    return "AF_INET6" if network.is_ipv6 else None


def _only_network(network: Network) -> Optional[str]:
    return None if network.rdma or network.is_loopback else network.interface


OF_RANKS = (
    Setting(
        "NCCL_SOCKET_IFNAME",
        _exact_name,
        "NCCL's bootstrap and TCP; without = eth1 would mean eth10 as well",
        "NCCL user guide, Environment Variables",
        ("NCCL_COMM_ID",),
    ),
    Setting(
        "NCCL_SOCKET_FAMILY",
        _family,
        "the address chosen is IPv6, and NCCL takes the interface's IPv4 address first",
        "NCCL user guide, Environment Variables",
    ),
    Setting(
        "GLOO_SOCKET_IFNAME",
        _name,
        "gloo would resolve the host name, which may be 127.0.0.1",
        "PyTorch, torch.distributed, Common environment variables",
    ),
    Setting(
        "TP_SOCKET_IFNAME",
        _name,
        "TensorPipe would resolve the host name, which may be 127.0.0.1",
        "PyTorch, torch/csrc/distributed/rpc/tensorpipe_agent.cpp",
    ),
    Setting(
        "UCX_NET_DEVICES",
        _only_network,
        "UCX would use all devices, also those that no peer reaches; unset where it would cut off RDMA devices",
        "UCX documentation, FAQ, Which network devices does UCX use?",
    ),
    Setting(
        "FI_TCP_IFACE",
        _name,
        "libfabric's TCP (MPICH, Intel MPI without RDMA) would use all interfaces; EFA doesn't read it",
        "libfabric, fi_tcp(7)",
    ),
    Setting(
        "FI_SOCKETS_IFACE",
        _name,
        "libfabric's sockets provider, which was before version 2.0, would use all interfaces",
        "libfabric, fi_sockets(7)",
    ),
    Setting(
        "OMPI_MCA_btl_tcp_if_include",
        _name,
        "Open MPI's messages over TCP would use all interfaces; its InfiniBand and EFA don't read it",
        "Open MPI documentation, Networking support, TCP",
        ("btl_tcp_if_exclude",),
    ),
)
"""What each process of a node sees. Their values are the node's own, and may differ from other nodes'."""

OF_LAUNCHERS = (
    Setting(
        "OMPI_MCA_oob_tcp_if_include",
        _name,
        "Open MPI 4's daemons call mpirun back over it",
        "Open MPI FAQ (4 and before), TCP, Which interfaces",
        ("oob_tcp_if_exclude",),
    ),
    Setting(
        "PRTE_MCA_prte_if_include",
        # PRRTE takes loopback only where there is nothing else, and then it ends: "No network interfaces were found"
        _unless_loopback,
        "Open MPI 5's daemons (PRRTE) call mpirun back over it; unset where all nodes are on one machine",
        "PRRTE documentation, prte_if_include",
        ("prte_if_exclude", "oob_tcp_if_exclude"),
    ),
    Setting(
        "HYDRA_IFACE",
        _name,
        "MPICH's proxies call mpiexec back over it, by address: no host name has to resolve",
        "MPICH wiki, Using the Hydra Process Manager, Environment settings",
        ("-iface", "-localhost"),
    ),
    Setting(
        "I_MPI_HYDRA_IFACE",
        _name,
        "Intel MPI's proxies call mpiexec back over it, by address: no host name has to resolve",
        "Intel MPI Library Developer Reference for Linux, Hydra Environment Variables",
        ("-iface", "-localhost"),
    ),
)
"""What an `mpirun` is told besides. It passes them on to its daemons on all nodes, so one value has to fit all."""


def rank_variables(network: Network, said: Iterable[str]) -> Dict[str, str]:
    """What every process of the node is told. `said` are names of the owner's variables, and words of their commands.

    Who sets a variable of these gives way to the owner's value of the same name.
    """
    return _values(OF_RANKS, network, said)


def launcher_variables(network: Network, peers: Sequence[Peer], said: Iterable[str]) -> Dict[str, str]:
    """What `mpirun` on node 0 is told besides, for all nodes at once; `said` is as for `rank_variables`.

    Where the nodes' interfaces have different names, Open MPI is given the smallest range with all their addresses,
    and Hydra, which knows names only, nothing: it then calls back to the launcher's host name.
    """
    values = _values(OF_LAUNCHERS, network, said)
    if is_named_alike(network, peers):
        return values
    common = covering_range([peer.address for peer in peers])
    return {name: common for name in values if "_MCA_" in name and common is not None}


def is_named_alike(network: Network, peers: Sequence[Peer]) -> bool:
    """Whether the interface has the same name on all nodes, as far as it is known."""
    return {peer.interface for peer in peers} <= {network.interface, None}


def covering_range(addresses: Sequence[str]) -> Optional[str]:
    """The smallest address range that holds all of them; None for none, and for IPv4 beside IPv6."""
    parsed = [ipaddress.ip_address(address) for address in addresses]
    if not parsed or len({address.version for address in parsed}) > 1:
        return None
    differing = 0
    for address in parsed:
        differing |= int(address) ^ int(parsed[0])
    prefix = parsed[0].max_prefixlen - differing.bit_length()
    return str(ipaddress.ip_network(f"{parsed[0]}/{prefix}", strict=False))


def _values(settings: Sequence[Setting], network: Network, said: Iterable[str]) -> Dict[str, str]:
    # a command may be a whole line for a shell
    words = [*network.in_files, *(part for word in said for part in word.split())]
    values = {}
    for setting in settings:
        value = setting.value(network)
        # both lists at once are an error to Open MPI, and a second answer to the same question to the others
        if value is not None and not any(_says(word, option) for option in setting.against for word in words):
            values[setting.name] = value
    return values


def _says(word: str, option: str) -> bool:
    return word.lstrip("-") == option.lstrip("-") if option.startswith("-") else option in word
