"""Dependencies of downloads and uploads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.storage.retry import Sleep

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class StorageDependencies:
    """`client` creates the S3 client on first use. `say` prints a line about the progress.

    `git_token` is the token for a git host, if the job asks for one.
    """

    client: Callable[[], S3Client]
    sleep: Sleep
    clock: Callable[[], float]
    say: Callable[[str], object]
    git_token: str | None = field(default=None, repr=False)
