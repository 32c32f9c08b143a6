"""A collector for tests of the agent: HTTPS with its own certificate, in a thread."""

import datetime as dt
import ipaddress
import ssl
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muster_worker.contract import wire
from muster_worker.contract.schema import Command, CommandKind, Report, ReportAnswer

HEARTBEAT_SECONDS = 0.1


class FakeCollector:
    """Stores all reports by node and returns each node's current command. It listens on `address`."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.reports: dict[int, list[tuple[float, Report]]] = {}
        self.tokens: set[str] = set()
        self.unknown_nodes: set[int] = set()
        self.heartbeat_seconds = HEARTBEAT_SECONDS
        self.refuse_with: int | None = None
        self._refused = 0
        self._commands: dict[int, Command] = {}
        self._changed = threading.Condition()
        self._address = address
        self.authority, key = _create_certificate(address)
        self._server = _Server((address, 0), _make_handler(self))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load(self._context, self.authority, key)
        self.keeps_connections = True
        self._server.socket = self._context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://{address}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._closed = False

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def renew(self) -> str:
        """Use a certificate of a new authority from now on; return the authority. Connections close after their
        answer.
        """
        authority, key = _create_certificate(self._address)
        _load(self._context, authority, key)
        self.keeps_connections = False
        with self._changed:
            self._changed.notify_all()
        return authority

    def set_command(self, node: int, command: Command) -> None:
        """Set the node's command."""
        with self._changed:
            self._commands[node] = command
            self._changed.notify_all()

    def take(self, body: bytes) -> bytes:
        """Store a report."""
        report = wire.decode(Report, body)
        with self._changed:
            self.reports.setdefault(report.node, []).append((time.monotonic(), report))
            self._changed.notify_all()
        return wire.encode(ReportAnswer(self.heartbeat_seconds))

    def find_refusal(self, node: int) -> int | None:
        """Return the status with which a node's requests are refused."""
        return 401 if node in self.unknown_nodes else self.refuse_with

    def refuse(self) -> None:
        """Count a refused request."""
        with self._changed:
            self._refused += 1
            self._changed.notify_all()

    def wait_refused(self, more: int) -> None:
        """Wait for this many more refusals."""
        with self._changed:
            goal = self._refused + more
            assert self._changed.wait_for(lambda: self._refused >= goal, 30), "nobody asked"

    def wait_for_command(self, node: int, after: str | None, seconds: float) -> bytes | None:
        """Return the node's command once its number is above `after`."""

        def newer() -> Command | None:
            command = self._commands.get(node)
            if command is None:
                return None
            order = (command.leader_term, command.attempt, CommandKind.ALL.index(command.kind))
            return command if after is None or order > tuple(map(int, after.split("."))) else None

        with self._changed:
            kept = self.keeps_connections
            self._changed.wait_for(
                lambda: self._closed or self.keeps_connections != kept or newer() is not None, seconds
            )
            command = newer()
        return None if command is None else wire.encode(command)

    def wait(
        self, node: int, condition: Callable[[Report], bool], patience: float, explain: Callable[[], str]
    ) -> Report:
        """Return the newest report of the node once it meets the condition."""

        def newest() -> Report | None:
            result = self.reports.get(node, [])
            return result[-1][1] if result and condition(result[-1][1]) else None

        with self._changed:
            self._changed.wait_for(lambda: newest() is not None, patience)
            report = newest()
            last = self.reports.get(node, [(0.0, None)])[-1]
        assert report is not None, f"waited in vain; the last report: {last}\n{explain()}"
        return report


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Log nothing: a killed agent breaks its connections."""


def _parse_node(headers: Message) -> int:
    return int(headers["Authorization"].rsplit("-", 1)[1])


def _make_handler(collector: FakeCollector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not self._send_refusal():
                self._answer(200, collector.take(body))

        def do_GET(self) -> None:
            if self._send_refusal():
                return
            query = parse_qs(urlsplit(self.path).query)
            node = _parse_node(self.headers)
            after = query["after"][0] if "after" in query else None
            command = collector.wait_for_command(node, after, float(query["wait"][0]))
            self._answer(204 if command is None else 200, command or b"")

        def _send_refusal(self) -> bool:
            collector.tokens.add(self.headers["Authorization"])
            status = collector.find_refusal(_parse_node(self.headers))
            if status is not None:
                self._answer(status, b"go away")
                collector.refuse()
            return status is not None

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if not collector.keeps_connections:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: tests read reports, not access logs."""

    return Handler


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "serving.pem")
        path.write_text(certificate + key)
        context.load_cert_chain(path)


def _create_certificate(listening: str) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"muster test {uuid.uuid4()}")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address(listening))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()
