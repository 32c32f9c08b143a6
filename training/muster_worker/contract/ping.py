"""The datagrams with which the agents of a job ask each other whether they live. Pure.

Each has the same length, and a code with the attempt's key, which only the job's agents have. So a stranger gets no
answer, and can't forge or change one. The asker chooses the nonce, so an old answer is no answer to a new question.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass
from typing import Optional

NONCE_BYTES = 16


class PingKind:
    """What a datagram asks or answers."""

    ASK = 0
    ALIVE = 1  # the agent works on this attempt
    SUCCEEDED = 2  # all of its ranks have exited with 0
    OVER = 3  # the operator has ended the attempt
    ALL = (ASK, ALIVE, SUCCEEDED, OVER)


@dataclass(frozen=True)
class Ping:
    """A question from one node to another, or the answer, which has the same nonce."""

    kind: int
    sender: int
    receiver: int
    nonce: bytes


_FIELDS = struct.Struct(f"!BII{NONCE_BYTES}s")
_CODE_BYTES = hashlib.sha256().digest_size
PING_BYTES = _FIELDS.size + _CODE_BYTES


def encode(ping: Ping, key: bytes) -> bytes:
    """Return the datagram."""
    fields = _FIELDS.pack(ping.kind, ping.sender, ping.receiver, ping.nonce)
    return fields + _code(fields, key)


def decode(datagram: bytes, key: bytes) -> Optional[Ping]:
    """Return the content of a datagram; None unless its code is right."""
    fields, code = datagram[: _FIELDS.size], datagram[_FIELDS.size :]
    if len(datagram) != PING_BYTES or not hmac.compare_digest(code, _code(fields, key)):
        return None
    ping = Ping(*_FIELDS.unpack(fields))
    return ping if ping.kind in PingKind.ALL else None


def _code(fields: bytes, key: bytes) -> bytes:
    return hmac.new(key, fields, hashlib.sha256).digest()
