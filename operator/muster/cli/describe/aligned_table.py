"""A table of texts as aligned lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

_GAP = "  "


def align(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the line of titles and a line for each row; none without rows. The last column may be of any width."""
    if not rows:
        return []
    lines = [titles, *rows]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(titles) - 1)]
    return [
        _GAP.join(
            [*(text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=False)), line[-1]]
        ).rstrip()
        for line in lines
    ]
