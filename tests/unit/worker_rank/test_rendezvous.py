"""A forked torchrun waits for the store of node 0."""

import socket
import threading

import pytest

from muster_worker.fork_server.rendezvous import find_store, wait_for_store

OPTIONS = ("-m", "torch.distributed.run", "--nnodes", "2", "--node_rank", "1", "--master_addr", "10.0.0.1")
PORT = ("--master_port", "29500")
COMMAND = ("--no_python", "python", "agent.pyz", "rank", "--", "python", "train.py", "--node_rank", "0")


@pytest.mark.parametrize(
    ("arguments", "store"),
    [
        ((*OPTIONS, *PORT, *COMMAND), ("10.0.0.1", 29500)),
        ((*OPTIONS, *PORT, "--tee", "3", *COMMAND), ("10.0.0.1", 29500)),
        # Node 0 opens the store itself.
        ((*OPTIONS, *PORT, "--node_rank", "0", *COMMAND), None),
        ((*OPTIONS, *COMMAND), None),
        ((*OPTIONS, *PORT, "--rdzv_backend", "c10d", *COMMAND), None),
        ((*OPTIONS, *PORT, "--rdzv-endpoint=other:1", *COMMAND), None),
        (("-m", "torch.distributed.run", "train.py"), None),
    ],
)
def test_the_store_is_that_of_the_launchers_options(arguments: tuple[str, ...], store: tuple[str, int] | None) -> None:
    assert find_store(arguments) == store


def test_torchrun_waits_until_the_store_is_open() -> None:
    with socket.socket() as store:
        store.bind(("127.0.0.1", 0))
        address, port = store.getsockname()
        arguments = ("--node_rank", "1", "--master_addr", address, "--master_port", str(port), "--no_python")
        waiting = threading.Thread(target=wait_for_store, args=(arguments, 30.0))
        waiting.start()
        assert waiting.is_alive()
        store.listen()
        connection, _ = store.accept()
        with connection:
            waiting.join()
            assert connection.recv(1) == b""


def test_the_wait_has_a_limit() -> None:
    with socket.socket() as store:
        store.bind(("127.0.0.1", 0))
        address, port = store.getsockname()
        wait_for_store(("--node_rank", "1", "--master_addr", address, "--master_port", str(port), "--no_python"), 0.05)
