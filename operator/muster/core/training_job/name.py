"""What the training jobs of a job are called: derived, so that each operator asks for the same one."""

import hashlib

from muster.api.spec.job import Metadata

UID_CHARS = 10
"""Of the hash of the job's uid, in hex: two jobs of one name, one after the other, have other training jobs."""


def training_job_name(metadata: Metadata, attempt: int) -> str:
    """At most 40 characters of the job's name, 10 for its uid and the attempt: within SageMaker's 63."""
    return f"{name_stem(metadata)}{attempt}"


def name_stem(metadata: Metadata) -> str:
    """What the names of all attempts' training jobs begin with."""
    return f"{metadata.name}-{hashlib.sha256(metadata.uid.encode()).hexdigest()[:UID_CHARS]}-"


def attempt_of(name: str, stem: str) -> int | None:
    """The attempt whose training job would have this name; None: no attempt's."""
    number = name.removeprefix(stem)
    return int(number) if number != name and number.isdecimal() and number.isascii() else None
