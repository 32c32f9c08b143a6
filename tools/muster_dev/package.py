"""Checks that the base package has no large dependencies: the operator's image and laptops shouldn't need 5 GB."""

from __future__ import annotations

from collections.abc import Sequence

from muster_dev.lock import split
from muster_dev.paths import REQUIREMENTS

ONLY_WITH_AN_EXTRA = ("boto3", "kopf", "kubernetes", "numpy", "torch")


def unwanted() -> Sequence[str]:
    """The packages in base.txt that only extras may require."""
    packages = split((REQUIREMENTS / "base.txt").read_text(encoding="utf-8"))
    return [f"requirements/base.txt has {name}" for name in ONLY_WITH_AN_EXTRA if name in packages]
