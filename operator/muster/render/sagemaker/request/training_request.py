"""A CreateTrainingJob request, and the code that must be uploaded to Amazon S3 first."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.api.document import JSON

Fields = dict[str, JSON]
"""A part of the request, in botocore's format."""


@dataclass(frozen=True)
class Archive:
    """The archive sourcedir.tar.gz with the job's code, which is uploaded to `uri`; `kms_key` is "" without a key.

    muster adds `files` to the root of the job's code. `objects` are other objects to upload, by URI.
    """

    uri: str
    kms_key: str
    files: Mapping[str, bytes]
    objects: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingRequest:
    """The request. `body` has CreateTrainingJob's arguments. `archive` is None if there is no code to upload."""

    body: Fields
    archive: Archive | None = None

    @property
    def training_job(self) -> str:
        """The training job's name."""
        return str(self.body["TrainingJobName"])

    @property
    def hyperparameters(self) -> dict[str, str]:
        """The hyperparameters as the containers receive them."""
        result = self.body.get("HyperParameters")
        return {name: str(value) for name, value in result.items()} if isinstance(result, dict) else {}

    @property
    def tags(self) -> dict[str, str]:
        """The training job's tags: the job's own and muster's."""
        result = self.body.get("Tags")
        tags = result if isinstance(result, list) else []
        return {str(tag["Key"]): str(tag["Value"]) for tag in tags if isinstance(tag, dict)}
