"""The datagrams with which agents ask each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract.ping import NONCE_BYTES, PING_BYTES, Ping, PingKind, decode, encode

KEY = bytes(range(32))
PING = Ping(PingKind.PING, 1, 9_999, b"n" * NONCE_BYTES)


@pytest.mark.parametrize("kind", PingKind.ALL)
def test_a_ping_is_read_with_its_key(kind: int) -> None:
    ping = Ping(kind, 0, 2**32 - 1, b"\xff" * NONCE_BYTES)
    datagram = encode(ping, KEY)
    assert len(datagram) == PING_BYTES
    assert decode(datagram, KEY) == ping
    assert decode(datagram, bytes(32)) is None


@given(st.binary(max_size=2 * PING_BYTES))
def test_a_stranger_s_datagram_is_ignored(datagram: bytes) -> None:
    assert decode(datagram, KEY) is None


@given(st.integers(0, PING_BYTES - 1), st.integers(1, 255))
def test_a_changed_datagram_is_ignored(place: int, change: int) -> None:
    datagram = bytearray(encode(PING, KEY))
    datagram[place] ^= change
    assert decode(bytes(datagram), KEY) is None


def test_an_unknown_kind_is_ignored() -> None:
    assert decode(encode(Ping(17, 1, 2, b"n" * NONCE_BYTES), KEY), KEY) is None
