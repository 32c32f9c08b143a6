"""The dependencies of downloads and uploads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.storage.retry import Sleep

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class StorageDependencies:
    """`get_s3_client` returns the S3 client, which it creates at the first call. `report` prints a line about progress.

    `git_token` is the token for the git host; None if there is no token.
    """

    get_s3_client: Callable[[], S3Client]
    sleep: Sleep
    clock: Callable[[], float]
    report: Callable[[str], object]
    git_token: str | None = field(default=None, repr=False)
