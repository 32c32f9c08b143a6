"""What the training jobs of a job are called: derived, so that whoever comes later asks for the same one."""

import hashlib

UID_CHARS = 10
"""Of the hash of the job's uid, in hex: two jobs of one name, one after the other, have other training jobs."""


def training_job_name(job_name: str, job_uid: str, attempt: int) -> str:
    """At most 40 characters of the job's name, 10 for its uid and the attempt: within SageMaker's 63."""
    return f"{job_name}-{hashlib.sha256(job_uid.encode()).hexdigest()[:UID_CHARS]}-{attempt}"
