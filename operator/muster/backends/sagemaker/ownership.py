"""Whether a training job is the one that a job's attempt would have made. Pure."""

from collections.abc import Mapping

from muster.api.spec import Job
from muster.backends.sagemaker.request.identity import ATTEMPT_TAG, UID_TAG


def is_of(tags: Mapping[str, str], job: Job, attempt: int) -> bool:
    """By the tags that muster gives it: names can be guessed, and are cut off from the job's uid."""
    return (tags.get(UID_TAG), tags.get(ATTEMPT_TAG)) == (job.metadata.uid, str(attempt))
