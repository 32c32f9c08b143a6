"""`spec.source` as types: code that isn't in the image."""

from typing import Annotated

from pydantic import Field

from muster.api.s3_uri import MAX_CHARS
from muster.api.spec.model import Model

MAX_FILES = 64
MAX_FILE_CHARS = 65_536

FileText = Annotated[str, Field(max_length=MAX_FILE_CHARS)]
"""The whole spec is limited to 256 KiB (api/validation/validate.py); larger code belongs in git or S3."""


class InlineSource(Model):
    """Files with their content in the resource."""

    files: Annotated[dict[str, FileText], Field(min_length=1, max_length=MAX_FILES)] = Field(
        description="Each file's content by its path: train.py, lib/data.py."
    )


class ConfigMapSource(Model):
    """The entries of a ConfigMap of the job's namespace as files."""

    name: str = Field(description="The ConfigMap's name.", min_length=1, max_length=253)


DEFAULT_USERNAME = "x-access-token"
"""GitHub documents this name for tokens of its apps; GitLab, Gitea and others accept any name with a personal token."""


class SecretKeyRef(Model):
    """A key of a Secret of the job's namespace, as in a container's env."""

    name: str = Field(description="The Secret's name.", min_length=1, max_length=253)
    key: str = Field(description="The key of the Secret's data that holds the token.", min_length=1, max_length=253)


class GitSource(Model):
    """One commit of a git repository."""

    url: str = Field(description="The repository: https://host/owner/name.git.", min_length=1, max_length=1024)
    commit: str = Field(
        description="The commit's whole hash, so that every start runs the same code: git rev-parse HEAD.",
        min_length=40,
        max_length=40,
    )
    path: str = Field(default="", description="A folder of the repository; unset: all of it.", max_length=1024)
    secret_key_ref: SecretKeyRef | None = Field(
        default=None,
        description="The token for reading the repository; unset: no token. muster sends it to the URL's host only. "
        "`muster run` reads it from the variable MUSTER_GIT_TOKEN.",
    )
    username: str | None = Field(
        default=None,
        description="The token's user name, if the host requires one: a deploy token's name; "
        f"unset: {DEFAULT_USERNAME}.",
        min_length=1,
        max_length=128,
    )


class S3Source(Model):
    """An archive in Amazon S3, as the SageMaker SDK makes them."""

    uri: str = Field(description="The archive: s3://bucket/key.tar.gz.", min_length=1, max_length=MAX_CHARS)


class Source(Model):
    """Code that isn't in the image, in the command's working directory: exactly one of these fields is set."""

    inline: InlineSource | None = Field(default=None, description="Files with their content in the resource.")
    config_map: ConfigMapSource | None = Field(default=None, description="A ConfigMap's entries as files.")
    git: GitSource | None = Field(default=None, description="One commit of a git repository.")
    s3: S3Source | None = Field(default=None, description="A .tar.gz archive in Amazon S3.")
