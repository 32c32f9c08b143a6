from __future__ import annotations

import hashlib
import io
import zlib

import pytest

from muster.storage.git_pack import TooLarge, check_pack

BLOB, OFS_DELTA, REF_DELTA = 3, 6, 7


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def entry(kind: int, content: bytes, base: bytes = b"", says: int | None = None) -> bytes:
    size = len(content) if says is None else says
    more = 0x80 if size > 15 else 0
    rest = varint(size >> 4) if more else b""
    return bytes([more | kind << 4 | size & 15]) + rest + base + zlib.compress(content)


def pack(*entries: bytes, count: int | None = None) -> io.BytesIO:
    head = b"PACK" + (2).to_bytes(4, "big") + (len(entries) if count is None else count).to_bytes(4, "big")
    body = head + b"".join(entries)
    return io.BytesIO(body + hashlib.sha1(body, usedforsecurity=False).digest())


def test_what_is_small_enough_passes_and_the_file_stands_at_its_end() -> None:
    file = pack(entry(BLOB, b"x" * 1000), entry(REF_DELTA, varint(1000) + varint(500), b"b" * 20))
    check_pack(file, 2000, 2)
    assert file.tell() == len(file.getvalue())


@pytest.mark.parametrize(
    "file",
    [
        pack(entry(BLOB, bytes(10_000_000))),
        pack(entry(BLOB, bytes(10_000_000), says=5)),
        pack(*[entry(BLOB, bytes(600_000))] * 2),
        pack(entry(BLOB, b"x"), entry(OFS_DELTA, varint(1) + varint(10**12), b"\x85\x05")),
        pack(entry(BLOB, b"x"), entry(REF_DELTA, varint(1) + varint(10**12), b"b" * 20)),
        pack(count=1_000_000),
    ],
    ids=["large", "lying", "together", "delta", "delta of a name", "many"],
)
def test_what_would_unpack_to_too_much_is_refused(file: io.BytesIO) -> None:
    with pytest.raises(TooLarge):
        check_pack(file, 1_000_000, 1000)


@pytest.mark.parametrize(
    "data", [b"", b"PACK", b"<html>not a pack</html>", pack(entry(BLOB, b"x" * 99)).getvalue()[:20]]
)
def test_what_is_no_pack_is_told(data: bytes) -> None:
    with pytest.raises(ValueError, match="pack"):
        check_pack(io.BytesIO(data), 1000, 10)
