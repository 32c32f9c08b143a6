"""What a job's training jobs are called, and how muster knows its own again. Pure."""

import hashlib

from muster.api.spec import Job, Metadata

MAX_NAME_CHARS = 63
"""TrainingJobName in botocore's service model of 2017-07-24."""

UID_TAG = "muster.dev/job-uid"
NAMESPACE_TAG = "muster.dev/namespace"
NAME_TAG = "muster.dev/name"
ATTEMPT_TAG = "muster.dev/attempt"

_UID_CHARS = 10


def training_job_name(metadata: Metadata, attempt: int) -> str:
    """The name of the job's training job number `attempt`, the same whoever asks: <job>-<hash of its uid>-<attempt>."""
    digest = hashlib.sha256(metadata.uid.encode()).hexdigest()[:_UID_CHARS]
    return f"{metadata.name}-{digest}-{attempt}"


def own_tags(job: Job, attempt: int) -> tuple[tuple[str, str], ...]:
    """The tags by which muster knows the training job again."""
    return (
        (UID_TAG, job.metadata.uid),
        (NAMESPACE_TAG, job.metadata.namespace),
        (NAME_TAG, job.metadata.name),
        (ATTEMPT_TAG, str(attempt)),
    )
