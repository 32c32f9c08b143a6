"""What a request needs to know besides the job: where it is sent, and as which training job."""

from dataclasses import dataclass

from muster.api.config.default_bucket import default_bucket


@dataclass(frozen=True)
class Setting:
    """`account` has 12 digits. `bucket` is where code and output lie when the job doesn't say; "": SageMaker's default.

    `training_job` is the training job's name, `tags` are muster's own.
    """

    region: str
    account: str
    training_job: str
    bucket: str = ""
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def default_bucket(self) -> str:
        """The bucket of jobs that name none."""
        return self.bucket or default_bucket(self.region, self.account)
