"""Opens the socket of the server for Kubeflow Trainer's progress protocol, and writes what rank 0 needs to use it.

A rank's wrapper on SageMaker does this before it starts the rank, so this module imports little.
"""

from __future__ import annotations

import os
import socket

from muster_worker.rank import trainer_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional

PATH = "/status"
"""The path of the URL."""

CA_NAME = "trainer-ca.crt"
"""The name of the file with the certificate, in the run folder."""

MAX_WAITING_CONNECTIONS = 8


class TrainerSocket:
    """The socket, its token, and the environment variables with which rank 0 finds both."""

    def __init__(self, run_dir: str, authority: Optional[str] = None) -> None:
        """Listen on the loopback address. `authority` is a certificate (PEM), if there is one. Raises `OSError`."""
        self.token = os.urandom(32).hex()
        paths = {trainer_variables.TOKEN: _write_file(run_dir, trainer_variables.TOKEN_FILE, self.token)}
        if authority is not None:  # clients load it even for an address without TLS
            paths[trainer_variables.CA_CERT] = _write_file(run_dir, CA_NAME, authority)
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self.listener.bind((trainer_variables.ADDRESS, 0))
            self.listener.listen(MAX_WAITING_CONNECTIONS)
        except OSError:
            self.listener.close()
            raise
        self.listener.setblocking(False)
        url = f"http://{trainer_variables.ADDRESS}:{self.listener.getsockname()[1]}{PATH}"
        self.variables: Mapping[str, str] = {trainer_variables.URL: url, **paths}


def _write_file(run_dir: str, name: str, text: str) -> str:
    """Write a file that only its owner can read. Returns its path. Raises `OSError`."""
    path = os.path.join(run_dir, name)
    try:
        os.unlink(path)  # of an earlier attempt
    except FileNotFoundError:
        pass
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    return path
