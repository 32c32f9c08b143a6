"""Write sets of ranks as ranges: 0-12,14-31."""

from collections.abc import Iterable

MAX_CHARS = 512
"""The maximum length of ranges in a status, which may have 100,000 ranks."""

ELLIPSIS = ",…"


def format_ranges(ranks: Iterable[int], limit: int = MAX_CHARS) -> str:
    """Write the ranks in order, as ranges; at most `limit` characters, truncated between ranges with an ellipsis."""
    parts = [f"{first}" if first == last else f"{first}-{last}" for first, last in _find_ranges(ranks)]
    text = ",".join(parts)
    if len(text) <= limit:
        return text
    text_start = text[: limit - len(ELLIPSIS) + 1]
    return text_start[: text_start.rfind(",")] + ELLIPSIS


def _find_ranges(ranks: Iterable[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if ranges and ranges[-1][1] == rank - 1:
            ranges[-1] = (ranges[-1][0], rank)
        else:
            ranges.append((rank, rank))
    return ranges
