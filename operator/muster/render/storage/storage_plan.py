"""Derive from a job's spec the files that its nodes download and upload. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import TypeAdapter

from muster.api.spec.job import Job
from muster.api.spec.source import DEFAULT_USERNAME, GitSource
from muster.render.storage.git_folder import GitFolder


@dataclass(frozen=True)
class S3Channel:
    """A channel whose data is in S3. `index` is its position in spec.inputs."""

    index: int
    name: str
    uri: str
    is_sharded: bool


@dataclass(frozen=True)
class CodePlan:
    """The source of the code; exactly one field is set. `config_map` is a ConfigMap in the job's namespace."""

    files: Mapping[str, str] = field(default_factory=dict)
    config_map: str | None = None
    git: GitFolder | None = None
    archive: str | None = None


@dataclass(frozen=True)
class StoragePlan:
    """The plan of a job, which is the same for all nodes. `checkpoint` and `output` are URIs in S3."""

    job: str
    nodes: int
    channels: tuple[S3Channel, ...] = ()
    code: CodePlan | None = None
    checkpoint: str | None = None
    output: str | None = None

    @property
    def has_uploads(self) -> bool:
        """Whether the node uploads files to S3."""
        return self.checkpoint is not None or self.output is not None

    @property
    def uses_s3(self) -> bool:
        """Whether the node downloads files from S3, or uploads files to it."""
        archive = self.code is not None and self.code.archive is not None
        return self.has_uploads or bool(self.channels) or archive


def make_storage_plan(job: Job) -> StoragePlan | None:
    """Return the job's plan; None for a job without files to download or upload."""
    spec = job.spec
    channels = tuple(
        S3Channel(index, channel.name, channel.s3.uri, channel.s3.distribution == "ShardedByS3Key")
        for index, channel in enumerate(spec.inputs)
        if channel.s3 is not None
    )
    plan = StoragePlan(
        job=job.metadata.name,
        nodes=spec.max_nodes,
        channels=channels,
        code=_make_code_plan(job),
        checkpoint=spec.checkpoint.s3 if spec.checkpoint is not None else None,
        output=spec.output.s3 if spec.output is not None else None,
    )
    return plan if plan.uses_s3 or plan.code is not None else None


def _make_code_plan(job: Job) -> CodePlan | None:
    source = job.spec.source
    if source is None:
        return None
    if source.inline is not None:
        return CodePlan(files=source.inline.files)
    if source.config_map is not None:
        return CodePlan(config_map=source.config_map.name)
    if source.git is not None:
        return CodePlan(git=make_git_folder(source.git))
    return CodePlan(archive=source.s3.uri if source.s3 is not None else None)


def make_git_folder(git: GitSource) -> GitFolder:
    """Return the commit to fetch. The user name is set only with a token."""
    username = None if git.secret_key_ref is None else git.username or DEFAULT_USERNAME
    return GitFolder(git.url, git.commit, git.path, username)


def encode_plan(plan: StoragePlan) -> str:
    """Encode the plan as JSON."""
    return _build_adapter().dump_json(plan, exclude_defaults=True).decode("utf-8")


def decode_plan(text: bytes) -> StoragePlan:
    """Decode the result of `encode_plan`. Raises `ValueError`."""
    return _build_adapter().validate_json(text)


@lru_cache(maxsize=1)
def _build_adapter() -> TypeAdapter[StoragePlan]:
    """Build the adapter at its first use, because most jobs have no plan."""
    return TypeAdapter(StoragePlan)
