"""An S3 on this machine: moto's, and a proxy that breaks connections to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield the URL of an S3 without buckets."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def make_client(url: str) -> S3Client:
    """Return a client with all permissions."""
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@contextmanager
def default_s3(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Client]:
    """Yield a client of the S3, to which AWS' default credential chain points inside the block, with one empty bucket,
    `data`.
    """
    set_environment(url, monkeypatch)
    # Another test of this process may have left objects there.
    reset(url)
    result = make_client(url)
    result.create_bucket(Bucket="data")
    yield result
    result.close()


def set_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let AWS' default credential chain point to the S3."""
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL_S3": url}.items():
        monkeypatch.setenv(name, value)


def reset(url: str) -> None:
    """Remove all buckets. moto stores its data as long as the process runs, not the server."""
    urlopen(Request(f"{url}/moto-api/reset", method="POST")).close()  # noqa: S310


def read_objects(client: S3Client, bucket: str, prefix: str = "") -> dict[str, bytes]:
    """Return all objects below a prefix, by key."""
    result: dict[str, bytes] = {}
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            result[entry["Key"]] = client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
    return result
