"""Requests to the API server without a process. Tests that wait for a state read it many times a second, and a kubectl
takes a tenth of a second of processor time for each.
"""

import base64
import functools
import http.client
import ssl
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from cluster import programs

TIMEOUT_SECONDS = 60.0


class ApiReader:
    """A connection with the administrator's certificate, which all threads share."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._connection: http.client.HTTPSConnection | None = None

    def read(self, path: str) -> str:
        """Return the answer. Raises AssertionError with the answer if it is an error."""
        return self.send("GET", path) if self.is_direct else _read_with_kubectl(self._kubeconfig, path)

    @functools.cached_property
    def is_direct(self) -> bool:
        """Whether the kubeconfig has a certificate. Only kubectl knows the other kinds of credentials."""
        return "client-certificate-data" in self._config["users"][0]["user"]

    def send(self, method: str, path: str, body: str | None = None, content_type: str = "") -> str:
        """Send a request with the certificate, and return the answer, as `read` does."""
        headers = {"Content-Type": content_type} if content_type else {}
        with self._lock:
            if self._connection is not None:
                try:
                    return _ask(self._connection, method, path, body, headers)
                except (OSError, http.client.HTTPException):
                    # The API server closes connections that are idle. A new cluster has another certificate.
                    self._connection.close()
            self._connection = _connect(self._config)
            return _ask(self._connection, method, path, body, headers)

    @property
    def _config(self) -> dict[str, list[dict[str, dict[str, str]]]]:
        config: dict[str, list[dict[str, dict[str, str]]]] = yaml.safe_load(self._kubeconfig.read_text("utf-8"))
        return config


@functools.cache
def get_reader(kubeconfig: Path) -> ApiReader:
    """Return the reader of this process."""
    return ApiReader(kubeconfig)


def _read_with_kubectl(kubeconfig: Path, path: str) -> str:
    command = [str(programs.find("kubectl")), f"--kubeconfig={kubeconfig}", "get", "--raw", path]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{path}: {done.stdout}{done.stderr}"
    return done.stdout


def _connect(config: dict[str, list[dict[str, dict[str, str]]]]) -> http.client.HTTPSConnection:
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    # Python reads a client's certificate from a file only, which nobody else can read.
    with tempfile.NamedTemporaryFile() as file:
        file.write(base64.b64decode(user["client-key-data"]) + base64.b64decode(user["client-certificate-data"]))
        file.flush()
        context.load_cert_chain(file.name)
    server = urlsplit(cluster["server"])
    return http.client.HTTPSConnection(server.hostname or "", server.port, timeout=TIMEOUT_SECONDS, context=context)


def _ask(
    connection: http.client.HTTPSConnection, method: str, path: str, body: str | None, headers: dict[str, str]
) -> str:
    connection.request(method, path, None if body is None else body.encode(), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status in (http.client.OK, http.client.CREATED), f"{path}: {text}"
    return text
