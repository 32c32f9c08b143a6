"""What the bare package may bring: an operator's image and a user's laptop shall not need 5 GB for it."""

from __future__ import annotations

from collections.abc import Sequence

from muster_dev.lock import split
from muster_dev.places import REQUIREMENTS

ONLY_WITH_AN_EXTRA = ("boto3", "kopf", "kubernetes", "numpy", "torch")


def unwanted() -> Sequence[str]:
    """The packages in base.txt that only extras may bring."""
    packages = split((REQUIREMENTS / "base.txt").read_text(encoding="utf-8"))
    return [f"requirements/base.txt has {name}" for name in ONLY_WITH_AN_EXTRA if name in packages]
