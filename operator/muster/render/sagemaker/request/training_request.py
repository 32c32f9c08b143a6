"""A CreateTrainingJob request, and the code that has to lie in Amazon S3 before it is sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.api.document import JSON

Fields = dict[str, JSON]
"""A part of the request, as botocore takes it."""


@dataclass(frozen=True)
class Archive:
    """Where the job's code has to lie as sourcedir.tar.gz; `kms_key` "": without a key of its own.

    `files` lie in its root beside the job's own code. `objects` have to lie in Amazon S3 too, by their URI.
    """

    uri: str
    kms_key: str
    files: Mapping[str, bytes]
    objects: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingRequest:
    """`body` is all of CreateTrainingJob's. `archive` None: the job has no code, or names an archive that is there."""

    body: Fields
    archive: Archive | None = None

    @property
    def training_job(self) -> str:
        """The training job's name."""
        return str(self.body["TrainingJobName"])

    @property
    def hyperparameters(self) -> dict[str, str]:
        """What the containers are given, as they are given it."""
        result = self.body.get("HyperParameters")
        return {name: str(value) for name, value in result.items()} if isinstance(result, dict) else {}

    @property
    def tags(self) -> dict[str, str]:
        """The training job's tags: the job's own and muster's."""
        result = self.body.get("Tags")
        tags = result if isinstance(result, list) else []
        return {str(tag["Key"]): str(tag["Value"]) for tag in tags if isinstance(tag, dict)}
