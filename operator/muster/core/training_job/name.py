"""Derive the names of a job's training jobs, so that every operator requests the same one."""

import hashlib

from muster.api.spec.job import Metadata

UID_CHARS = 10
"""The hash's length in hex characters. With the hash, a job that is created again gets new names."""


def build_training_job_name(metadata: Metadata, attempt: int) -> str:
    """At most 40 characters of the name, 10 of the uid's hash, and the attempt: within SageMaker's limit of 63."""
    return f"{build_name_prefix(metadata)}{attempt}"


def build_name_prefix(metadata: Metadata) -> str:
    """The prefix of the names of all attempts' training jobs."""
    return f"{metadata.name}-{hashlib.sha256(metadata.uid.encode()).hexdigest()[:UID_CHARS]}-"


def parse_attempt(name: str, stem: str) -> int | None:
    """The attempt of the training job with this name; None if the name has another form."""
    number = name.removeprefix(stem)
    return int(number) if number != name and number.isdecimal() and number.isascii() else None
