"""What downloads and uploads depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.storage.retry import Sleep

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class StorageDependencies:
    """`client` gives the client of S3, made when it is needed. `say` tells people how far it is, one line each.

    `git_token` is what a git host is shown, where the job asks for one.
    """

    client: Callable[[], S3Client]
    sleep: Sleep
    clock: Callable[[], float]
    say: Callable[[str], object]
    git_token: str | None = field(default=None, repr=False)
