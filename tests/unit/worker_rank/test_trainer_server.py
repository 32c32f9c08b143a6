"""Connections to the progress server that end in the same turn of the event loop as others begin."""

import selectors
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster_worker.rank.trainer_socket import TrainerSocket
from muster_worker.rank.trainer_variables import ADDRESS
from muster_worker.rank_group.trainer_server import MAX_CONNECTIONS, TrainerServer


@pytest.fixture
def server_and_port(tmp_path: Path) -> Iterator[tuple[selectors.BaseSelector, int]]:
    selector = selectors.DefaultSelector()
    trainer_socket = TrainerSocket(str(tmp_path), "")
    server = TrainerServer(selector, trainer_socket)
    yield selector, trainer_socket.listener.getsockname()[1]
    server.close()
    selector.close()


def handle_one_turn(selector: selectors.BaseSelector) -> None:
    for key, _ in selector.select(5.0):
        key.data()


def test_a_connection_that_is_dropped_for_another_one_is_not_read(
    server_and_port: tuple[selectors.BaseSelector, int],
) -> None:
    selector, port = server_and_port
    clients = []
    for _ in range(MAX_CONNECTIONS):
        clients.append(socket.create_connection((ADDRESS, port)))
        handle_one_turn(selector)
    # The next turn first accepts the new connection, which replaces the oldest one, and then reads the oldest one.
    clients.append(socket.create_connection((ADDRESS, port)))
    clients[0].send(b"x")

    handle_one_turn(selector)

    listeners_and_connections = len(selector.get_map())
    assert listeners_and_connections == 1 + MAX_CONNECTIONS
    for client in clients:
        client.close()
