"""Names of imported jobs. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

MAX_CHARS = 40
"""Maximum length of a job's name (api/spec/job.py, Metadata)."""


def choose_job_name(wanted: str, taken: Collection[str]) -> str:
    """Return a valid job name that resembles `wanted` and is not in `taken`."""
    words = re.sub("[^a-z0-9]+", "-", wanted.lower()).strip("-")
    name = (words if words[:1].isalpha() else f"job-{words}")[:MAX_CHARS].strip("-")
    number = 1
    candidate = name
    while candidate in taken:
        number += 1
        ending = f"-{number}"
        candidate = name[: MAX_CHARS - len(ending)].rstrip("-") + ending
    return candidate
