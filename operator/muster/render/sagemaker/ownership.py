"""Whether a training job is the one that a job's attempt would have made. Pure."""

from collections.abc import Mapping

from muster.render.sagemaker.request.identity import ATTEMPT_TAG, UID_TAG


def is_of(tags: Mapping[str, str], job_uid: str, attempt: int) -> bool:
    """By the tags that muster gives it: another user may create a training job of the same name."""
    return (tags.get(UID_TAG), tags.get(ATTEMPT_TAG)) == (job_uid, str(attempt))
