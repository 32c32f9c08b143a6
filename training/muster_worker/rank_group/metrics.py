"""Reads the job's metrics from the ranks' output with its regular expressions."""

from __future__ import annotations

import math
import re
from typing import Dict, Optional, Pattern, Sequence, Tuple

from muster_worker.contract.schema import Metric

MAX_LINE_CHARS = 1024
"""Length of the part of a line that is searched. A bad expression is slow: `.*.*loss=([0-9.]+)` takes 0.2 s for this
length, and 14 s for 4,096 characters."""


class MetricReader:
    """Extracts the latest value of each metric from the ranks' output."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        """Raises `re.error` for an invalid expression."""
        self._patterns: Tuple[Tuple[str, Pattern[str]], ...] = tuple(
            (metric.name, re.compile(metric.regex)) for metric in metrics
        )

    def read(self, lines: bytes) -> Dict[str, float]:
        """Return the last value of each metric that occurs in `lines`."""
        result: Dict[str, float] = {}
        if not self._patterns or not lines:
            return result
        texts = [line[:MAX_LINE_CHARS] for line in lines.decode("utf-8", "replace").split("\n")]
        for name, pattern in self._patterns:
            for text in reversed(texts):
                value = _find_value(pattern, text)
                if value is not None:
                    result[name] = value
                    break
        return result


def _find_value(pattern: Pattern[str], text: str) -> Optional[float]:
    value = None
    for match in pattern.finditer(text):
        try:
            number = float(match.group(1) if pattern.groups else match.group())
        except (TypeError, ValueError):
            continue  # not a number; try the next match
        if math.isfinite(number):
            value = number
    return value
