"""Builds git packs entry by entry, also invalid ones."""

from __future__ import annotations

import hashlib
import zlib

COMMIT, TREE, BLOB, OFS_DELTA, REF_DELTA = 1, 2, 3, 6, 7
_KINDS = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}


def encode_varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def build_entry(kind: int, content: bytes, base: bytes = b"", says: int | None = None) -> bytes:
    """Build an entry of a pack. `says` is the size in its header, if it isn't the true one."""
    size = len(content) if says is None else says
    more = 0x80 if size > 15 else 0
    rest = encode_varint(size >> 4) if more else b""
    return bytes([more | kind << 4 | size & 15]) + rest + base + zlib.compress(content)


def pack(*entries: bytes, count: int | None = None) -> bytes:
    """Build a pack. `count` is the number of entries in its header, if it isn't the true one."""
    head = b"PACK" + (2).to_bytes(4, "big") + (len(entries) if count is None else count).to_bytes(4, "big")
    body = head + b"".join(entries)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def name(kind: int, content: bytes) -> str:
    """Return the name of an object, 40 hex digits."""
    whole = b"%s %d\0" % (_KINDS[kind], len(content)) + content
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest()


def copy(offset: int, size: int) -> bytes:
    """Return a delta's copy instruction."""
    return bytes([0xFF]) + offset.to_bytes(4, "little") + size.to_bytes(3, "little")


def build_delta(base: int, result: int, *commands: bytes) -> bytes:
    """Return a delta, with the sizes of its base and its result."""
    return encode_varint(base) + encode_varint(result) + b"".join(commands)


def build_tree(*files: tuple[str, str, str]) -> bytes:
    """Return a tree of files, each with its mode, its name and the object's name."""
    return b"".join(f"{mode} {path}".encode() + b"\0" + bytes.fromhex(one) for mode, path, one in files)


def commit_of(tree_name: str) -> bytes:
    """Return a commit without parents."""
    who = "somebody <somebody@example.org> 1700000000 +0000"
    return f"tree {tree_name}\nauthor {who}\ncommitter {who}\n\na change\n".encode()
