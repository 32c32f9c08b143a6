"""Checks that the base package has no large dependencies, such as torch with 5 GB."""

from __future__ import annotations

from collections.abc import Sequence

from muster_dev.lock import split_entries
from muster_dev.paths import REQUIREMENTS

ONLY_WITH_AN_EXTRA = ("boto3", "kopf", "kubernetes", "numpy", "torch")


def find_unwanted_packages() -> Sequence[str]:
    """Return a message for each package in base.txt that only extras may require."""
    packages = split_entries((REQUIREMENTS / "base.txt").read_text(encoding="utf-8"))
    return [f"requirements/base.txt has {name}" for name in ONLY_WITH_AN_EXTRA if name in packages]
