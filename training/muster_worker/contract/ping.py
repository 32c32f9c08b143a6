"""The datagrams of pings between the agents of a job. Pure.

All datagrams have the same length. Each has a message authentication code with the attempt's key, which only the job's
agents have, so other clients get no answer and can't forge one. Each ping has a new nonce, so an old answer can't be
replayed.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass
from typing import Optional

NONCE_BYTES = 16


class PingKind:
    """The kind of a datagram: a ping, or one of the answers."""

    PING = 0
    ALIVE = 1  # the agent works on this attempt
    SUCCEEDED = 2  # all of its ranks have exited with 0
    ATTEMPT_ENDED = 3  # the operator has ended the attempt
    ALL = (PING, ALIVE, SUCCEEDED, ATTEMPT_ENDED)


@dataclass(frozen=True)
class Ping:
    """A ping from one node to another, or the answer to it, which has the same nonce."""

    kind: int
    sender: int
    receiver: int
    nonce: bytes


_FIELDS = struct.Struct(f"!BII{NONCE_BYTES}s")
_AUTHENTICATION_CODE_BYTES = hashlib.sha256().digest_size
PING_BYTES = _FIELDS.size + _AUTHENTICATION_CODE_BYTES


def encode(ping: Ping, key: bytes) -> bytes:
    """Return the datagram."""
    fields = _FIELDS.pack(ping.kind, ping.sender, ping.receiver, ping.nonce)
    return fields + _compute_authentication_code(fields, key)


def decode(datagram: bytes, key: bytes) -> Optional[Ping]:
    """Return the content of a datagram; None if its authentication code is wrong."""
    fields, authentication_code = datagram[: _FIELDS.size], datagram[_FIELDS.size :]
    if len(datagram) != PING_BYTES or not hmac.compare_digest(
        authentication_code, _compute_authentication_code(fields, key)
    ):
        return None
    ping = Ping(*_FIELDS.unpack(fields))
    return ping if ping.kind in PingKind.ALL else None


def _compute_authentication_code(fields: bytes, key: bytes) -> bytes:
    return hmac.new(key, fields, hashlib.sha256).digest()
