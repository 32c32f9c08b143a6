from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

from fakes import s3_server
from muster.storage.dependencies import StorageDependencies
from muster.storage.s3.bucket import make_s3_client

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    with s3_server.s3_server() as url:
        yield url


@pytest.fixture
def s3(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Client]:
    """Yield an S3 with one empty bucket, `data`, for the default credential chain."""
    with s3_server.default_s3(s3_url, monkeypatch) as client:
        yield client


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def dependencies(s3: S3Client, said: list[str]) -> Iterator[StorageDependencies]:  # noqa: ARG001 - it sets the environment
    client = make_s3_client()
    yield StorageDependencies(
        get_s3_client=cache(lambda: client), sleep=lambda _: None, clock=time.time, report=said.append
    )
    client.close()
