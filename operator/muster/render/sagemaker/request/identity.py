"""The tags that identify muster's training jobs. Pure."""

from collections.abc import Mapping

from muster.api.spec.job import Job

UID_TAG = "muster.dev/job-uid"
NAMESPACE_TAG = "muster.dev/namespace"
NAME_TAG = "muster.dev/name"
ATTEMPT_TAG = "muster.dev/attempt"


def own_tags(job: Job, attempt: int) -> tuple[tuple[str, str], ...]:
    """The tags of the job's training job with number `attempt`."""
    return (
        (UID_TAG, job.metadata.uid),
        (NAMESPACE_TAG, job.metadata.namespace),
        (NAME_TAG, job.metadata.name),
        (ATTEMPT_TAG, str(attempt)),
    )


def is_of(tags: Mapping[str, str], job_uid: str, attempt: int) -> bool:
    """Whether the tags are those of this job's attempt: another user may create a training job with its name."""
    return (tags.get(UID_TAG), tags.get(ATTEMPT_TAG)) == (job_uid, str(attempt))
