"""Derive the names of a job's training jobs, so that every operator requests the same training job."""

import hashlib

from muster.api.spec.job import Metadata

HASH_CHARS = 10
"""The hash's length in hex characters. A job that is created again has another uid, so the hash gives it new names."""


def build_training_job_name(metadata: Metadata, attempt: int) -> str:
    """Return the job's name, 10 characters of the uid's hash and the attempt. SageMaker allows 63 characters."""
    return f"{build_name_prefix(metadata)}{attempt}"


def build_name_prefix(metadata: Metadata) -> str:
    """Return the common prefix of the names of a job's training jobs."""
    return f"{metadata.name}-{hashlib.sha256(metadata.uid.encode()).hexdigest()[:HASH_CHARS]}-"


def parse_attempt(name: str, prefix: str) -> int | None:
    """Return the attempt of the training job with this name; None if the name has another form."""
    number = name.removeprefix(prefix)
    return int(number) if number != name and number.isdecimal() and number.isascii() else None
