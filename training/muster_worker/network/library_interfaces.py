"""Environment variables that set the chosen interface for each library, and options that exclude them.

Pure. `muster explain` shows `reason` and `source`. The user's own values always have priority. Three kinds of
variables are missing on purpose: PMIx (`PMIX_MCA_ptl_*`) only connects within a node and needs loopback; Hydra sets
MPICH's MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE from HYDRA_IFACE; NCCL_IB_HCA and EFA devices are not TCP interfaces.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Optional, Sequence, Tuple

from muster_worker.contract.schema import Peer


@dataclass(frozen=True)
class Network:
    """The chosen interface and address, and whether RDMA devices are usable.

    `file_variables` are names of variables that the image's configuration files set.
    """

    interface: str
    address: str
    rdma: bool = False
    file_variables: Tuple[str, ...] = ()

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.address

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return False  # no address yet, only a placeholder of `muster explain`


@dataclass(frozen=True)
class Setting:
    """A library's variable. `value` returns None if it doesn't apply. `excluded_by` are options that exclude it.

    An option with a leading dash is one of a command line. Other options match any part of a word or variable name.
    """

    name: str
    value: Callable[[Network], Optional[str]]
    reason: str
    source: str
    excluded_by: Tuple[str, ...] = ()


def _get_interface_name(network: Network) -> Optional[str]:
    return network.interface


def _get_exact_interface_name(network: Network) -> Optional[str]:
    return f"={network.interface}"


def _get_non_loopback_name(network: Network) -> Optional[str]:
    return None if network.is_loopback else network.interface


def _get_address_family(network: Network) -> Optional[str]:
    return "AF_INET6" if network.is_ipv6 else None


def _get_non_rdma_name(network: Network) -> Optional[str]:
    return None if network.rdma or network.is_loopback else network.interface


RANK_SETTINGS = (
    Setting(
        "NCCL_SOCKET_IFNAME",
        _get_exact_interface_name,
        "NCCL's bootstrap and TCP; without = eth1 would also match eth10",
        "NCCL user guide, Environment Variables",
        ("NCCL_COMM_ID",),
    ),
    Setting(
        "NCCL_SOCKET_FAMILY",
        _get_address_family,
        "the address chosen is IPv6, and NCCL takes the interface's IPv4 address first",
        "NCCL user guide, Environment Variables",
    ),
    Setting(
        "GLOO_SOCKET_IFNAME",
        _get_interface_name,
        "gloo would resolve the host name, which may be 127.0.0.1",
        "PyTorch, torch.distributed, Common environment variables",
    ),
    Setting(
        "TP_SOCKET_IFNAME",
        _get_interface_name,
        "TensorPipe would resolve the host name, which may be 127.0.0.1",
        "PyTorch, torch/csrc/distributed/rpc/tensorpipe_agent.cpp",
    ),
    Setting(
        "UCX_NET_DEVICES",
        _get_non_rdma_name,
        "UCX would use all devices, also those that no peer reaches; unset where it would cut off RDMA devices",
        "UCX documentation, FAQ, Which network devices does UCX use?",
    ),
    Setting(
        "FI_TCP_IFACE",
        _get_interface_name,
        "libfabric's TCP (MPICH, Intel MPI without RDMA) would use all interfaces; EFA doesn't read it",
        "libfabric, fi_tcp(7)",
    ),
    Setting(
        "FI_SOCKETS_IFACE",
        _get_interface_name,
        "libfabric's sockets provider (before version 2.0) would use all interfaces",
        "libfabric, fi_sockets(7)",
    ),
    Setting(
        "OMPI_MCA_btl_tcp_if_include",
        _get_interface_name,
        "Open MPI's messages over TCP would use all interfaces; its InfiniBand and EFA don't read it",
        "Open MPI documentation, Networking support, TCP",
        ("btl_tcp_if_exclude",),
    ),
)
"""Variables for each process of a node. Values may differ between nodes."""

LAUNCHER_SETTINGS = (
    Setting(
        "OMPI_MCA_oob_tcp_if_include",
        _get_interface_name,
        "Open MPI 4's daemons call mpirun back over it",
        "Open MPI FAQ (4 and before), TCP, Which interfaces",
        ("oob_tcp_if_exclude",),
    ),
    Setting(
        "PRTE_MCA_prte_if_include",
        # If loopback is the only interface, PRRTE rejects it by name: "No network interfaces were found".
        _get_non_loopback_name,
        "Open MPI 5's daemons (PRRTE) call mpirun back over it; unset where all nodes are on one machine",
        "PRRTE documentation, prte_if_include",
        ("prte_if_exclude", "oob_tcp_if_exclude"),
    ),
    Setting(
        "HYDRA_IFACE",
        _get_interface_name,
        "MPICH's proxies call mpiexec back over it, by address: no host name has to resolve",
        "MPICH wiki, Using the Hydra Process Manager, Environment settings",
        ("-iface", "-localhost"),
    ),
    Setting(
        "I_MPI_HYDRA_IFACE",
        _get_interface_name,
        "Intel MPI's proxies call mpiexec back over it, by address: no host name has to resolve",
        "Intel MPI Library Developer Reference for Linux, Hydra Environment Variables",
        ("-iface", "-localhost"),
    ),
)
"""Additional variables for `mpirun`. It sends them to its daemons on all nodes, so one value has to fit all nodes."""


def build_rank_variables(network: Network, user_words: Iterable[str]) -> Dict[str, str]:
    """Return the variables for each process of the node.

    `user_words` are the names of the user's variables and the words of the commands. Callers give priority to the
    user's value of the same name.
    """
    return _build_variables(RANK_SETTINGS, network, user_words)


def build_launcher_variables(network: Network, peers: Sequence[Peer], user_words: Iterable[str]) -> Dict[str, str]:
    """Return the additional variables for `mpirun`, valid for all nodes. See `build_rank_variables` for `user_words`.

    If the interfaces' names differ between nodes, Open MPI gets the smallest range that has all their addresses. Hydra
    accepts only names and gets no variable: its proxies connect to the launcher's host name.
    """
    values = _build_variables(LAUNCHER_SETTINGS, network, user_words)
    if has_same_name(network, peers):
        return values
    common = find_covering_range([peer.address for peer in peers])
    return {name: common for name in values if "_MCA_" in name and common is not None}


def has_same_name(network: Network, peers: Sequence[Peer]) -> bool:
    """Whether the interface has the same name on all nodes, as far as known."""
    return {peer.interface for peer in peers} <= {network.interface, None}


def find_covering_range(addresses: Sequence[str]) -> Optional[str]:
    """Return the smallest address range with all addresses; None without addresses, or for a mix of IPv4 and IPv6."""
    parsed = [ipaddress.ip_address(address) for address in addresses]
    if not parsed or len({address.version for address in parsed}) > 1:
        return None
    different_bits = 0
    for address in parsed:
        different_bits |= int(address) ^ int(parsed[0])
    prefix = parsed[0].max_prefixlen - different_bits.bit_length()
    return str(ipaddress.ip_network(f"{parsed[0]}/{prefix}", strict=False))


def _build_variables(settings: Sequence[Setting], network: Network, user_words: Iterable[str]) -> Dict[str, str]:
    # a command may be a shell line
    words = [*network.file_variables, *(part for word in user_words for part in word.split())]
    values = {}
    for setting in settings:
        value = setting.value(network)
        # Open MPI rejects an include list together with an exclude list; for other libraries the user's option wins.
        if value is not None and not any(_mentions(word, option) for option in setting.excluded_by for word in words):
            values[setting.name] = value
    return values


def _mentions(word: str, option: str) -> bool:
    return word.lstrip("-") == option.lstrip("-") if option.startswith("-") else option in word
