"""Whether a report's bytes may be decoded: how much they would become is counted before any object is built. Pure.

Counting bytes is done by C code in time that is linear in their number: a mebibyte takes a few milliseconds.
"""

from muster_worker.contract.schema import MAX_METRICS
from muster_worker.contract.wire import max_report_bytes

ITEMS_PER_RANK = 40
"""A rank's report has 17 fields and 8 lines."""

ITEMS_PER_METRIC = 8

OTHER_ITEMS = 512
"""The report's own fields, 16 links, the launcher's end."""

MAX_STRING_BYTES = 32 * 1024
"""The longest string is a problem's message, each of whose characters may take six bytes."""

MAX_DEPTH = 6
"""Report, its ranks, a rank, its lines: 4, and room."""

_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class OutOfBounds(ValueError):
    """No report of this job is like that; the message says in which way."""


def check_bounds(body: bytes, procs_per_node: int) -> None:
    """Raises `OutOfBounds` when a report of a node with so many ranks can't be as large as `body`.

    Says nothing of whether it is JSON: if it isn't, what a parser builds until it finds out is bounded, too.
    """
    if len(body) > max_report_bytes(procs_per_node):
        raise OutOfBounds(f"more than {max_report_bytes(procs_per_node)} bytes")
    most = ITEMS_PER_RANK * procs_per_node + ITEMS_PER_METRIC * MAX_METRICS + OTHER_ITEMS
    # an escaped quotation mark ends no string, and neither does one behind an escaped backslash
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * most:
        raise OutOfBounds("too many strings")
    parts = plain.split(b'"')
    if max(map(len, parts[1::2]), default=0) > MAX_STRING_BYTES:
        raise OutOfBounds("a string is too long")
    outline = b"".join(parts[::2])
    if outline.count(b",") + outline.count(b"[") + outline.count(b"{") > most:
        raise OutOfBounds("too many values")
    brackets = outline.translate(None, _ALL_BUT_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets:
        raise OutOfBounds("nested too deeply")
