"""The settings for a request that are not in the job: account, region and training job."""

from dataclasses import dataclass

from muster.api.config.default_bucket import build_default_bucket_name


@dataclass(frozen=True)
class RequestSettings:
    """The operator's settings for a request.

    `account` has 12 digits. `bucket` is for code and output if the job has no location; "" means SageMaker's default
    bucket. `training_job` is the training job's name. `tags` are the tags that muster adds.
    """

    region: str
    account: str
    training_job_name: str
    bucket: str = ""
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def default_bucket(self) -> str:
        """The bucket for code and output if the job sets no S3 URI for them."""
        return self.bucket or build_default_bucket_name(self.region, self.account)
