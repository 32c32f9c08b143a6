"""The types of `spec.source`."""

from typing import Annotated

from pydantic import Field

from muster.api.s3_uri import MAX_CHARS
from muster.api.spec.model import Model

MAX_FILES = 64
MAX_FILE_CHARS = 65_536

FileText = Annotated[str, Field(max_length=MAX_FILE_CHARS)]
"""The text of a file. The whole spec is limited to 256 KiB, so larger code belongs in git or S3."""


class InlineSource(Model):
    """Files whose content is in the resource."""

    files: Annotated[dict[str, FileText], Field(min_length=1, max_length=MAX_FILES)] = Field(
        description="The content of each file, by the file's path: train.py, lib/data.py."
    )


class ConfigMapSource(Model):
    """The entries of a ConfigMap in the job's namespace, as files."""

    name: str = Field(description="The ConfigMap's name.", min_length=1, max_length=253)


DEFAULT_USERNAME = "x-access-token"
"""GitHub documents this user name for tokens of its apps. GitLab and Gitea accept any name with a personal token."""


class SecretKeyRef(Model):
    """A key of a Secret in the job's namespace, as in a container's env."""

    name: str = Field(description="The Secret's name.", min_length=1, max_length=253)
    key: str = Field(description="The key of the Secret's data that holds the token.", min_length=1, max_length=253)


class GitSource(Model):
    """One commit of a git repository."""

    url: str = Field(description="The repository's URL: https://host/owner/name.git.", min_length=1, max_length=1024)
    commit: str = Field(
        description="The full hash of the commit, as `git rev-parse HEAD` prints it.",
        min_length=40,
        max_length=40,
    )
    path: str = Field(
        default="", description="The folder of the repository to use; by default the whole repository.", max_length=1024
    )
    secret_key_ref: SecretKeyRef | None = Field(
        default=None,
        description="The token for reading the repository, which muster sends only to the URL's host; by default none. "
        "`muster run` reads the token from the variable MUSTER_GIT_TOKEN.",
    )
    username: str | None = Field(
        default=None,
        description="The user name for the token, if the host requires one, such as a deploy token's name; "
        f"by default {DEFAULT_USERNAME}.",
        min_length=1,
        max_length=128,
    )


class S3Source(Model):
    """A .tar.gz archive in Amazon S3, such as the SageMaker SDK's sourcedir.tar.gz."""

    uri: str = Field(description="The archive's URI: s3://bucket/key.tar.gz.", min_length=1, max_length=MAX_CHARS)


class Source(Model):
    """Code that muster adds to the command's working directory. Exactly one of these fields is set."""

    inline: InlineSource | None = Field(default=None, description="Files whose content is in the resource.")
    config_map: ConfigMapSource | None = Field(default=None, description="The entries of a ConfigMap, as files.")
    git: GitSource | None = Field(default=None, description="One commit of a git repository.")
    s3: S3Source | None = Field(default=None, description="A .tar.gz archive in Amazon S3.")
