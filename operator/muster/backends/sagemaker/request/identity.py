"""What a job's training jobs are called, and how muster knows its own again. Pure."""

from muster.api.spec import Job, Metadata
from muster.plan.training_job_name import training_job_name as name_of

UID_TAG = "muster.dev/job-uid"
NAMESPACE_TAG = "muster.dev/namespace"
NAME_TAG = "muster.dev/name"
ATTEMPT_TAG = "muster.dev/attempt"


def training_job_name(metadata: Metadata, attempt: int) -> str:
    """The name of the job's training job number `attempt`, the same whoever asks."""
    return name_of(metadata.name, metadata.uid, attempt)


def own_tags(job: Job, attempt: int) -> tuple[tuple[str, str], ...]:
    """The tags by which muster knows the training job again."""
    return (
        (UID_TAG, job.metadata.uid),
        (NAMESPACE_TAG, job.metadata.namespace),
        (NAME_TAG, job.metadata.name),
        (ATTEMPT_TAG, str(attempt)),
    )
