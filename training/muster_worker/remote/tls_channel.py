"""A non-blocking TLS connection between two agents that share one certificate."""

from __future__ import annotations

import os
import selectors
import socket
import ssl

from muster_worker.contract.schema import Credentials

MAX_UNSENT_BYTES = 256 * 1024
"""Maximum unsent data for a slow reader. At this limit the agent stops reading the output that it forwards."""

READ_BYTES = 64 * 1024


class ChannelLost(Exception):
    """The connection was lost, or the other side has the wrong certificate."""


class Identity:
    """The TLS contexts of an attempt's agents."""

    def __init__(self, credentials: Credentials, folder: str) -> None:
        """`folder` is a private folder for a temporary key file. Raises `OSError` for unusable credentials."""
        self._certificate = ssl.PEM_cert_to_DER_cert(credentials.certificate)
        self._server = _create_context(ssl.PROTOCOL_TLS_SERVER, credentials, folder)
        self._client = _create_context(ssl.PROTOCOL_TLS_CLIENT, credentials, folder)

    def accept(self, connection: socket.socket) -> Channel:
        """Return the channel of an accepted connection."""
        return Channel(self._server.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), self)

    def connect(self, connection: socket.socket) -> Channel:
        """Return the channel of an outgoing connection."""
        return Channel(self._client.wrap_socket(connection, do_handshake_on_connect=False), self)

    def matches_peer_of(self, connection: ssl.SSLSocket) -> bool:
        """Whether the peer presented exactly this certificate, and not one signed by it."""
        return connection.getpeercert(binary_form=True) == self._certificate


class Channel:
    """One side of the connection. Call `advance` when the socket is ready for `events`."""

    def __init__(self, connection: ssl.SSLSocket, identity: Identity) -> None:
        self.socket = connection
        self.is_open = False  # handshake done and certificate verified
        self.is_paused = False  # the caller has no room for more data
        self._identity = identity
        self._unsent = bytearray()
        self._write_blocked = False

    @property
    def events(self) -> int:
        """The events to register for; 0 for none."""
        events = 0 if self.is_paused else selectors.EVENT_READ
        return events | (selectors.EVENT_WRITE if self._write_blocked else 0)

    @property
    def is_full(self) -> bool:
        """Whether so much data is unsent that the caller should write no more."""
        return len(self._unsent) >= MAX_UNSENT_BYTES

    @property
    def is_drained(self) -> bool:
        """Whether all data was sent."""
        return not self._unsent

    def advance(self) -> bytes:
        """Continue the handshake, send queued data, and return received data. Raises `ChannelLost`."""
        try:
            if not self.is_open and not self._handshake():
                return b""
            self._flush()
            return b"" if self.is_paused else self._read()
        except (OSError, ValueError) as error:  # most of ssl's errors are OSErrors, one is a ValueError
            raise ChannelLost(str(error)) from None

    def write(self, data: bytes) -> None:
        """Send `data` now, or queue it. Raises `ChannelLost`."""
        self._unsent += data
        if self.is_open:
            try:
                self._flush()
            except OSError as error:
                raise ChannelLost(str(error)) from None

    def close(self) -> None:
        """Close the connection and discard unsent data."""
        self.socket.close()

    def _handshake(self) -> bool:
        self._write_blocked = False
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLWantWriteError:
            self._write_blocked = True
            return False
        if not self._identity.matches_peer_of(self.socket):
            raise ChannelLost("the other end shows another certificate")
        self.is_open = True
        return True

    def _flush(self) -> None:
        self._write_blocked = False
        while self._unsent:
            try:
                sent = self.socket.send(self._unsent[:READ_BYTES])
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                self._write_blocked = True
                return
            del self._unsent[:sent]

    def _read(self) -> bytes:
        """Read all decrypted data. The selector doesn't report data in the buffer of TLS."""
        data = bytearray()
        while True:
            try:
                chunk = self.socket.recv(READ_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            if not chunk:
                if not data:
                    raise ChannelLost("the other end has closed the connection")
                break
            data += chunk
            if len(data) >= READ_BYTES and not self.socket.pending():
                break  # the selector reports data in the kernel
        return bytes(data)


def _create_context(protocol: int, credentials: Credentials, folder: str) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False  # all agents of the attempt share the certificate, which names no host
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=credentials.certificate)
    _load_key(context, credentials, folder)
    return context


def _load_key(context: ssl.SSLContext, credentials: Credentials, folder: str) -> None:
    """Load the key from a temporary file, because OpenSSL reads keys from files only."""
    path = os.path.join(folder, "attempt.pem")
    if os.path.lexists(path):  # an agent was killed before it removed the file
        os.unlink(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(credentials.certificate + credentials.key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
