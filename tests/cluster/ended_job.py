"""What a job that is over says of its ranks."""

from typing import Any


def succeeded(status: Any) -> str:
    """How many of all ranks succeeded, by a job's status: 4/4."""
    ranks = status["ranks"]
    count = sum(entry["count"] for entry in ranks["byState"] if entry["state"] == "Succeeded")
    return f"{count}/{ranks['world']}"
