"""Names of imported jobs. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

MAX_CHARS = 40
"""Maximum length of a job's name (see Metadata in api/spec/job.py)."""


def choose_job_name(preferred_name: str, used_names: Collection[str]) -> str:
    """Return a valid job name that resembles `preferred_name` and is not in `used_names`."""
    words = re.sub("[^a-z0-9]+", "-", preferred_name.lower()).strip("-")
    name = (words if words[:1].isalpha() else f"job-{words}")[:MAX_CHARS].strip("-")
    number = 1
    candidate = name
    while candidate in used_names:
        number += 1
        suffix = f"-{number}"
        candidate = name[: MAX_CHARS - len(suffix)].rstrip("-") + suffix
    return candidate
