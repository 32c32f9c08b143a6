"""Only one local run of a SageMaker job at a time uses the toolkit's port."""

import socket

import pytest

from muster.backends.local.rendezvous_port import PortTaken, reserve_rendezvous_port


@pytest.fixture
def port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        number: int = found.getsockname()[1]
        return number


def test_a_second_run_is_refused_before_it_starts(port: int) -> None:
    name = f"\0muster-test-{port}"
    taken = pytest.raises(PortTaken, match=f"port {port} of this machine is in use")
    with reserve_rendezvous_port(port, name), taken, reserve_rendezvous_port(port, name):
        pass
    with reserve_rendezvous_port(port, name):
        pass


def test_a_port_of_another_process_is_left_alone(port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with (
            pytest.raises(PortTaken, match=f"ss -ltnp 'sport = :{port}'"),
            reserve_rendezvous_port(port, f"\0muster-test-{port}"),
        ):
            pass


def test_the_port_is_there_for_the_ranks(port: int) -> None:
    with reserve_rendezvous_port(port, f"\0muster-test-{port}"), socket.socket() as rank:
        rank.bind(("", port))
