"""The job's metrics, read from the ranks' output by its regular expressions."""

from __future__ import annotations

import math
import re
from typing import Dict, Optional, Pattern, Sequence, Tuple

from muster_worker.contract.schema import Metric

MAX_LINE_CHARS = 1024
"""The part of a line that expressions see: what a bad expression can cost is bounded by it. `.*.*loss=([0-9.]+)` takes
0.2 s for such a line, and 14 s for one of 4,096."""


class MetricReader:
    """Finds the latest value of each metric in what ranks print."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        """Raises `re.error` for an expression that Python can't read."""
        self._patterns: Tuple[Tuple[str, Pattern[str]], ...] = tuple(
            (metric.name, re.compile(metric.regex)) for metric in metrics
        )

    def read(self, lines: bytes) -> Dict[str, float]:
        """The last value of each metric in `lines`; metrics that don't occur are absent."""
        result: Dict[str, float] = {}
        if not self._patterns or not lines:
            return result
        texts = [line[:MAX_LINE_CHARS] for line in lines.decode("utf-8", "replace").split("\n")]
        for name, pattern in self._patterns:
            for text in reversed(texts):
                value = _value(pattern, text)
                if value is not None:
                    result[name] = value
                    break
        return result


def _value(pattern: Pattern[str], text: str) -> Optional[float]:
    value = None
    for match in pattern.finditer(text):
        try:
            number = float(match.group(1) if pattern.groups else match.group())
        except (TypeError, ValueError):
            continue  # an expression may match what isn't a number; the next match may be one
        if math.isfinite(number):
            value = number
    return value
