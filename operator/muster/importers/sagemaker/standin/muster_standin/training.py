"""The completed training job that the stand-in returns to a script after `fit` or `train`."""

from __future__ import annotations

from .errors import UnsupportedOperation
from .session import Session
from .state import get_state
from .unknown import UnknownValue


class TrainingJob:
    """The value of estimator.latest_training_job: a training job that is Completed at once."""

    def __init__(self, origin: str, name: str) -> None:
        self._origin = origin
        self._name = name

    @property
    def name(self) -> str | UnknownValue:
        return self._name or get_state().create_unknown(f"{self._origin}.latest_training_job.name")

    job_name = training_job_name = name

    def wait(self, *_: object, **__: object) -> None:
        """Return at once, because no training job runs."""

    def describe(self) -> Description:
        return Description(f"{self._origin}.latest_training_job.describe()")

    def __getattr__(self, name: str) -> UnknownValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return get_state().create_unknown(f"{self._origin}.latest_training_job.{name}")


class Description(dict[str, object]):
    """The response of DescribeTrainingJob. The status is Completed, so that scripts don't wait."""

    def __init__(self, origin: str) -> None:
        super().__init__(TrainingJobStatus="Completed", SecondaryStatus="Completed")
        self._origin = origin

    def __missing__(self, key: str) -> UnknownValue:
        return get_state().create_unknown(f"{self._origin}[{key!r}]")


def check_session(callable_name: str, session: object) -> None:
    """Raise `UnsupportedOperation` if the session is not a `Session`, such as the session of a pipeline."""
    if session is not None and not isinstance(session, Session):
        found_type = session.origin if isinstance(session, UnknownValue) else type(session).__name__
        raise UnsupportedOperation(
            f"{callable_name}(sagemaker_session=...): found {found_type}; a sagemaker.Session() is expected"
        )


def describe_session(session: object) -> dict[str, object]:
    """Return the region, the bucket and the prefix that the script has set."""
    if not isinstance(session, Session):
        return {}
    settings = {
        "region": session.boto_session.configured_region,
        "bucket": session.configured_bucket,
        "prefix": session.default_bucket_prefix,
    }
    return {name: value for name, value in settings.items() if value is not None}
