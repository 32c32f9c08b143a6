"""Check the size of a report before decoding it, by counting the objects that a parser would create."""

from muster_worker.contract.schema import MAX_METRICS
from muster_worker.contract.wire import compute_max_report_bytes

ITEMS_PER_RANK = 80
"""A rank's report has 25 fields (5 are text), 8 lines, and 4 collectives with 5 fields each (3 are text)."""

ITEMS_PER_METRIC = 8

OTHER_ITEMS = 512
"""The report's own fields, 16 links, the launcher's end."""

MAX_STRING_BYTES = 32 * 1024
"""The maximum length of a string. The longest is a problem's message, with up to six bytes for each character."""

MAX_DEPTH = 6
"""The report, its ranks, a rank and its collectives have 5 levels; the sixth is a reserve."""

_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class ReportTooLarge(ValueError):
    """A report that is larger than any valid report of this job; the message names the limit."""


def check_report_size(body: bytes, procs_per_node: int) -> None:
    """Raise `ReportTooLarge` if the report of a node with `procs_per_node` ranks can't be as large as `body`.

    This check also bounds the objects that a parser creates from invalid JSON before it fails.
    """
    if len(body) > compute_max_report_bytes(procs_per_node):
        raise ReportTooLarge(f"more than {compute_max_report_bytes(procs_per_node)} bytes")
    max_items = ITEMS_PER_RANK * procs_per_node + ITEMS_PER_METRIC * MAX_METRICS + OTHER_ITEMS
    # Escaped quotation marks don't end a string. A quotation mark after an escaped backslash does.
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * max_items:
        raise ReportTooLarge("too many strings")
    parts = plain.split(b'"')
    if max(map(len, parts[1::2]), default=0) > MAX_STRING_BYTES:
        raise ReportTooLarge("a string is too long")
    outline = b"".join(parts[::2])
    if outline.count(b",") + outline.count(b"[") + outline.count(b"{") > max_items:
        raise ReportTooLarge("too many values")
    brackets = outline.translate(None, _ALL_BUT_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets:
        raise ReportTooLarge("nested too deeply")
