from __future__ import annotations

import time
from collections.abc import Iterator
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


@pytest.fixture(scope="session")
def s3_client(s3_url: str) -> Iterator[S3Client]:
    """Yield a client with all permissions. All tests share it, because creating one takes a tenth of a second."""
    client = s3_server.make_client(s3_url)
    yield client
    client.close()


@pytest.fixture(scope="session")
def default_client(s3_url: str) -> Iterator[S3Client]:
    """Yield muster's own client, which has read the environment of `s3`."""
    with pytest.MonkeyPatch.context() as patch:
        s3_server.set_environment(s3_url, patch)
        client = make_s3_client()
    yield client
    client.close()


@pytest.fixture
def s3(s3_url: str, s3_client: S3Client, monkeypatch: pytest.MonkeyPatch) -> S3Client:
    """Return a client of an S3 with one empty bucket, `data`, to which the default credential chain points."""
    s3_server.set_environment(s3_url, monkeypatch)
    s3_server.reset(s3_url)
    s3_client.create_bucket(Bucket="data")
    return s3_client


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def dependencies(s3: S3Client, default_client: S3Client, said: list[str]) -> StorageDependencies:  # noqa: ARG001 - it creates the bucket
    return StorageDependencies(
        get_s3_client=lambda: default_client, sleep=lambda _: None, clock=time.time, report=said.append
    )
