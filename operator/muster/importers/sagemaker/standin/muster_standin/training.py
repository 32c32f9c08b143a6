"""The completed training job that a script gets after `fit` or `train`; no job runs."""

from __future__ import annotations

from .errors import Unsupported
from .session import Session
from .state import current_state
from .unknown import Unknown


class TrainingJob:
    """estimator.latest_training_job: a job with the script's name that is Completed at once."""

    def __init__(self, origin: str, name: str) -> None:
        self._origin = origin
        self._name = name

    @property
    def name(self) -> str | Unknown:
        return self._name or current_state().unknown(f"{self._origin}.latest_training_job.name")

    job_name = training_job_name = name

    def wait(self, *_: object, **__: object) -> None:
        """Return at once."""

    def describe(self) -> Description:
        return Description(f"{self._origin}.latest_training_job.describe()")

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return current_state().unknown(f"{self._origin}.latest_training_job.{name}")


class Description(dict[str, object]):
    """The response of DescribeTrainingJob: status Completed, so that scripts don't wait; other fields are unknown."""

    def __init__(self, origin: str) -> None:
        super().__init__(TrainingJobStatus="Completed", SecondaryStatus="Completed")
        self._origin = origin

    def __missing__(self, key: str) -> Unknown:
        return current_state().unknown(f"{self._origin}[{key!r}]")


def check_session(owner: str, session: object) -> None:
    """Raise `Unsupported` for another kind of session, such as a pipeline's."""
    if session is not None and not isinstance(session, Session):
        result = session.origin if isinstance(session, Unknown) else type(session).__name__
        raise Unsupported(f"{owner}(sagemaker_session=...): found {result}; a sagemaker.Session() is expected")


def session_facts(session: object) -> dict[str, object]:
    """Return the region, bucket and prefix that the script sets."""
    if not isinstance(session, Session):
        return {}
    facts = {
        "region": session.boto_session.given_region,
        "bucket": session.given_bucket,
        "prefix": session.default_bucket_prefix,
    }
    return {name: value for name, value in facts.items() if value is not None}
