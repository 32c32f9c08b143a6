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
    """`client` returns the S3 client and creates it on first use. `report` prints a line about progress.

    `git_token` is the token for the git host; None if there is no token.
    """

    client: Callable[[], S3Client]
    sleep: Sleep
    clock: Callable[[], float]
    report: Callable[[str], object]
    git_token: str | None = field(default=None, repr=False)
