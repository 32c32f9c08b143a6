import ipaddress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract.schema import Peer
from muster_worker.mpi.mca_files import read_mca_names
from muster_worker.network.library_interfaces import (
    LAUNCHER_SETTINGS,
    RANK_SETTINGS,
    Network,
    build_launcher_variables,
    build_rank_variables,
    find_covering_range,
)

ETH = Network("eth1", "10.79.0.11")
PEERS = (Peer(0, "10.79.0.11", 1, "eth1"), Peer(1, "10.79.0.12", 1, "eth1"))
MIXED = (Peer(0, "10.79.0.11", 1, "eth1"), Peer(1, "10.79.0.12", 1, "ens5"))


def test_a_tcp_network() -> None:
    assert build_rank_variables(ETH, ()) == {
        "NCCL_SOCKET_IFNAME": "=eth1",
        "GLOO_SOCKET_IFNAME": "eth1",
        "TP_SOCKET_IFNAME": "eth1",
        "UCX_NET_DEVICES": "eth1",
        "FI_TCP_IFACE": "eth1",
        "FI_SOCKETS_IFACE": "eth1",
        "OMPI_MCA_btl_tcp_if_include": "eth1",
    }


@pytest.mark.parametrize(
    ("network", "name", "value"),
    [
        (Network("eth1", "10.79.0.11", rdma=True), "UCX_NET_DEVICES", None),  # it would exclude mlx5_0
        (Network("lo", "127.0.0.1"), "UCX_NET_DEVICES", None),
        (Network("eth1", "fd00::5"), "NCCL_SOCKET_FAMILY", "AF_INET6"),
        (Network("eth1", "10.79.0.11"), "NCCL_SOCKET_FAMILY", None),
        (Network("eth1", "10.79.0.11", rdma=True), "FI_TCP_IFACE", "eth1"),
    ],
)
def test_where_a_variable_is_right(network: Network, name: str, value: str | None) -> None:
    assert build_rank_variables(network, ()).get(name) == value


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (("OMPI_MCA_btl_tcp_if_exclude",), {"OMPI_MCA_btl_tcp_if_include"}),
        (("mpirun", "--mca", "btl_tcp_if_exclude", "lo,docker0"), {"OMPI_MCA_btl_tcp_if_include"}),
        (("sh", "-c", "mpirun -mca btl_tcp_if_exclude lo ./a.out"), {"OMPI_MCA_btl_tcp_if_include"}),
        (("mpirun", "-x", "OMPI_MCA_btl_tcp_if_exclude=lo"), {"OMPI_MCA_btl_tcp_if_include"}),
        (("python", "train.py", "--iface", "eth0"), set()),
        (("NCCL_DEBUG",), set()),
    ],
)
def test_never_beside_what_excludes_it(said: tuple[str, ...], lost: set[str]) -> None:
    assert set(build_rank_variables(ETH, ())) - set(build_rank_variables(ETH, said)) == lost


def test_an_images_own_files_exclude_as_well(tmp_path: Path) -> None:
    home, prefix = tmp_path / "home", tmp_path / "mpi"
    (home / ".openmpi").mkdir(parents=True)
    (home / ".openmpi" / "mca-params.conf").write_text("# a comment = no\nbtl_tcp_if_exclude = lo,docker0\n\nodd\n")
    (prefix / "etc").mkdir(parents=True)
    (prefix / "etc" / "openmpi-mca-params.conf").write_text("rmaps_base_mapping_policy=slot\n")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "mpirun").touch(mode=0o755)
    names = read_mca_names({"HOME": str(home), "PATH": str(prefix / "bin")})
    assert names[:2] == ("btl_tcp_if_exclude", "rmaps_base_mapping_policy")
    assert "OMPI_MCA_btl_tcp_if_include" not in build_rank_variables(replace(ETH, file_variables=names), ())
    elsewhere = tmp_path / "params"
    elsewhere.write_text("oob_tcp_if_exclude = lo\n")
    given = read_mca_names({"OMPI_MCA_mca_base_param_files": f"{elsewhere}:/nowhere", "PATH": ""})
    assert "OMPI_MCA_oob_tcp_if_include" not in build_launcher_variables(replace(ETH, file_variables=given), PEERS, ())


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (("OMPI_MCA_oob_tcp_if_exclude",), {"OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include"}),
        (("--prtemca", "prte_if_exclude", "lo"), {"PRTE_MCA_prte_if_include"}),
        (("-iface", "eth0"), {"HYDRA_IFACE", "I_MPI_HYDRA_IFACE"}),
        (("-localhost", "10.0.0.1"), {"HYDRA_IFACE", "I_MPI_HYDRA_IFACE"}),
    ],
)
def test_a_launcher_gets_no_setting_twice(said: tuple[str, ...], lost: set[str]) -> None:
    everything = build_launcher_variables(ETH, PEERS, ())
    assert everything == dict.fromkeys((setting.name for setting in LAUNCHER_SETTINGS), "eth1")
    assert set(everything) - set(build_launcher_variables(ETH, PEERS, said)) == lost


def test_nodes_whose_interfaces_have_different_names() -> None:
    assert build_launcher_variables(ETH, MIXED, ()) == {
        "OMPI_MCA_oob_tcp_if_include": "10.79.0.8/29",
        "PRTE_MCA_prte_if_include": "10.79.0.8/29",
    }


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ((), None),
        (("10.0.0.1",), "10.0.0.1/32"),
        (("10.0.0.1", "10.0.0.2"), "10.0.0.0/30"),
        (("10.78.1.5", "10.78.2.7"), "10.78.0.0/22"),
        (("10.0.0.1", "192.168.0.1"), "0.0.0.0/0"),
        (("fd00::1", "fd00::2"), "fd00::/126"),
        (("10.0.0.1", "fd00::2"), None),
    ],
)
def test_the_range_of_all(addresses: tuple[str, ...], expected: str | None) -> None:
    assert find_covering_range(addresses) == expected


@given(st.lists(st.ip_addresses(v=4).map(str), min_size=1))
def test_no_smaller_range_holds_them_all(addresses: list[str]) -> None:
    text = find_covering_range(addresses)
    assert text is not None
    result = ipaddress.ip_network(text)
    assert all(ipaddress.ip_address(address) in result for address in addresses)
    for half in result.subnets() if result.prefixlen < 32 else ():
        assert not all(ipaddress.ip_address(address) in half for address in addresses)


def test_each_has_its_why_and_source() -> None:
    for setting in (*RANK_SETTINGS, *LAUNCHER_SETTINGS):
        assert setting.reason, setting.name
        assert setting.source, setting.name
