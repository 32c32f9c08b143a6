"""The names of nodes in host files, and the node of a name."""

import pytest

from muster_worker.contract.schema import Peer
from muster_worker.mpi.host_files import choose_host_names, find_peer, format_hydra_file, format_open_mpi_file


def peers(*addresses: str) -> tuple[Peer, ...]:
    return tuple(Peer(node, address, 29500 + node) for node, address in enumerate(addresses))


@pytest.mark.parametrize(
    ("addresses", "names"),
    [
        (("10.0.0.1", "10.0.0.2"), ["10.0.0.1", "10.0.0.2"]),
        (("127.0.0.1", "127.0.0.1"), ["algo-1", "algo-2"]),  # on one machine
        (("fd00::1", "fd00::2"), ["algo-1", "algo-2"]),  # colons are not allowed
        (("10.0.0.1",), ["localhost"]),
    ],
)
def test_names_in_host_files(addresses: tuple[str, ...], names: list[str]) -> None:
    assert list(choose_host_names(peers(*addresses))) == names


def test_host_files() -> None:
    assert format_open_mpi_file(["a", "b"], 8) == "a slots=8\nb slots=8\n"
    assert format_hydra_file(["a", "b"], 8) == "a:8\nb:8\n"


@pytest.mark.parametrize(
    ("host", "node"),
    [
        *[("algo-2", 1), ("vit-1", 1), ("algo-2.vit.default.svc", 1), ("10.0.0.2", 1), ("algo-1", 0)],
        *[("algo-3", None), ("vit", None), ("10.0.0.3", None), ("", None), ("algo-", None)],
    ],
)
def test_the_node_that_a_name_means(host: str, node: int | None) -> None:
    result = find_peer(host, "vit", peers("10.0.0.1", "10.0.0.2"))
    assert (None if result is None else result.node) == node


def test_an_address_that_nodes_share_means_none_of_them() -> None:
    assert find_peer("127.0.0.1", "vit", peers("127.0.0.1", "127.0.0.1")) is None


def test_an_address_of_ipv6() -> None:
    result = find_peer("[fd00::2]", "vit", peers("fd00::1", "fd00::2"))
    assert result is not None
    assert result.node == 1
