"""Reads the ranks of an ended job's status."""

from typing import Any


def succeeded(status: Any) -> str:
    """Return the succeeded ranks of all ranks by a job's status, such as 4/4."""
    ranks = status["ranks"]
    count = sum(entry["count"] for entry in ranks["byState"] if entry["state"] == "Succeeded")
    return f"{count}/{ranks['world']}"
