"""A TLS connection that never blocks, between two agents that know each other by one certificate."""

from __future__ import annotations

import os
import selectors
import socket
import ssl

from muster_worker.contract.schema import Credentials

MAX_UNSENT_BYTES = 256 * 1024
"""Who has so much waiting for a slow reader takes no more itself, so that the writer is made to wait."""

READ_BYTES = 64 * 1024


class ChannelLost(Exception):
    """The connection is gone, or the other end is not who it has to be; the message is for people."""


class Identity:
    """What an attempt's agents show and believe."""

    def __init__(self, credentials: Credentials, folder: str) -> None:
        """`folder` is private: the key lies in it for a moment. Raises `OSError` for credentials that can't be used."""
        self._certificate = ssl.PEM_cert_to_DER_cert(credentials.certificate)
        self._server = _context(ssl.PROTOCOL_TLS_SERVER, credentials, folder)
        self._client = _context(ssl.PROTOCOL_TLS_CLIENT, credentials, folder)

    def accept(self, connection: socket.socket) -> Channel:
        """The channel of a connection that came in."""
        return Channel(self._server.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), self)

    def connect(self, connection: socket.socket) -> Channel:
        """The channel of a connection that goes out."""
        return Channel(self._client.wrap_socket(connection, do_handshake_on_connect=False), self)

    def is_shown_by(self, connection: ssl.SSLSocket) -> bool:
        """Whether the other end has the very certificate, not only one that it vouches for."""
        return connection.getpeercert(binary_form=True) == self._certificate


class Channel:
    """One end. Call `advance` whenever the socket is ready for what `events` names."""

    def __init__(self, connection: ssl.SSLSocket, identity: Identity) -> None:
        self.socket = connection
        self.is_open = False  # the handshake is done, and the other end is one of us
        self.is_paused = False  # its owner has no room for what may come
        self._identity = identity
        self._unsent = bytearray()
        self._write_blocked = False

    @property
    def events(self) -> int:
        """What to wait for; 0: nothing."""
        wanted = 0 if self.is_paused else selectors.EVENT_READ
        return wanted | (selectors.EVENT_WRITE if self._write_blocked else 0)

    @property
    def is_full(self) -> bool:
        """Whether the other end is to read first."""
        return len(self._unsent) >= MAX_UNSENT_BYTES

    @property
    def is_drained(self) -> bool:
        """Whether all that was written has been sent."""
        return not self._unsent

    def advance(self) -> bytes:
        """Go on with the handshake and with what is unsent; what has come. Raises `ChannelLost`."""
        try:
            if not self.is_open and not self._shake():
                return b""
            self._flush()
            return b"" if self.is_paused else self._read()
        except (OSError, ValueError) as error:  # ssl's errors are OSErrors, one is a ValueError
            raise ChannelLost(str(error)) from None

    def write(self, data: bytes) -> None:
        """Send `data`, now or as soon as it can be. Raises `ChannelLost`."""
        self._unsent += data
        if self.is_open:
            try:
                self._flush()
            except OSError as error:
                raise ChannelLost(str(error)) from None

    def close(self) -> None:
        """Let go. What is unsent is lost."""
        self.socket.close()

    def _shake(self) -> bool:
        self._write_blocked = False
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLWantWriteError:
            self._write_blocked = True
            return False
        if not self._identity.is_shown_by(self.socket):
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
        """What is there, all that TLS has decrypted: the selector knows nothing of what waits inside."""
        data = bytearray()
        while True:
            try:
                piece = self.socket.recv(READ_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            if not piece:
                if not data:
                    raise ChannelLost("the other end has closed the connection")
                break
            data += piece
            if len(data) >= READ_BYTES and not self.socket.pending():
                break  # what is left in the kernel makes the socket ready again
        return bytes(data)


def _context(protocol: int, credentials: Credentials, folder: str) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False  # a certificate stands for the rank group, not for a host
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=credentials.certificate)
    _load_key(context, credentials, folder)
    return context


def _load_key(context: ssl.SSLContext, credentials: Credentials, folder: str) -> None:
    """OpenSSL reads keys from files only: this one is there for as long as that takes."""
    path = os.path.join(folder, "rank group.pem")
    if os.path.lexists(path):  # of an agent that was killed at this very moment
        os.unlink(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(credentials.certificate + credentials.key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
