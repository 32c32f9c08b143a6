"""The tags that identify muster's training jobs. Pure."""

from collections.abc import Mapping

from muster.api.spec.job import Job

UID_TAG = "muster.dev/job-uid"
NAMESPACE_TAG = "muster.dev/namespace"
NAME_TAG = "muster.dev/name"
ATTEMPT_TAG = "muster.dev/attempt"


def make_job_tags(job: Job, attempt: int) -> tuple[tuple[str, str], ...]:
    """Return the tags of the training job of this attempt."""
    return (
        (UID_TAG, job.metadata.uid),
        (NAMESPACE_TAG, job.metadata.namespace),
        (NAME_TAG, job.metadata.name),
        (ATTEMPT_TAG, str(attempt)),
    )


def has_job_tags(tags: Mapping[str, str], job_uid: str, attempt: int) -> bool:
    """Whether the tags belong to this attempt of the job. Another user's training job may have the same name."""
    return (tags.get(UID_TAG), tags.get(ATTEMPT_TAG)) == (job_uid, str(attempt))
