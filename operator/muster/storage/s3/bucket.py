"""Send requests to an S3 bucket, and convert errors to `StorageError`. Blocks the thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from boto3.exceptions import S3UploadFailedError
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from muster.render.storage.objects import StoredObject
from muster.storage.s3.errors import translate_error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONNECTIONS = 16
"""The number of concurrent requests, which is enough for a fast network and not too much for a small machine."""

_ATTEMPTS = 8
"""The number of botocore's attempts for each request, with a backoff of up to 20 s."""

_TRANSFER = TransferConfig(max_concurrency=8, multipart_chunksize=16 * 2**20, multipart_threshold=64 * 2**20)

_CHUNK_BYTES = 2**20


def make_s3_client() -> S3Client:
    """Create a client with the credentials that boto3 finds: variables, profile, IRSA, Pod Identity, instance role.

    `AWS_ENDPOINT_URL_S3` replaces Amazon's endpoint.
    """
    config = Config(
        max_pool_connections=CONNECTIONS,
        retries={"mode": "standard", "max_attempts": _ATTEMPTS},
        connect_timeout=10,
        read_timeout=60,
    )
    return boto3.session.Session().client("s3", config=config)


@dataclass(frozen=True)
class Bucket:
    """A bucket. `field` is the path of the job's field that contains its name."""

    client: S3Client
    name: str
    field: str

    def list_objects(self, prefix: str) -> Iterator[StoredObject]:
        """List every object whose key has this prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        with self._translate_errors("s3:ListBucket", prefix):
            for page in pages:
                for entry in page.get("Contents", ()):
                    yield StoredObject(entry["Key"], entry["Size"], entry["ETag"])

    def read(self, s3_object: StoredObject, start: int, end: int, sink: Callable[[bytes], object]) -> None:
        """Pass the bytes from `start` to `end` of an object to `sink`. Fail if its etag has changed."""
        with self._translate_errors("s3:GetObject", s3_object.key):
            # S3 sends a checksum only without a range.
            if (start, end) == (0, s3_object.size):
                response = self.client.get_object(Bucket=self.name, Key=s3_object.key, IfMatch=s3_object.etag)
            else:
                response = self.client.get_object(
                    Bucket=self.name, Key=s3_object.key, IfMatch=s3_object.etag, Range=f"bytes={start}-{end - 1}"
                )
            with closing(response["Body"]) as body:
                for chunk in body.iter_chunks(_CHUNK_BYTES):
                    sink(chunk)

    def upload(self, key: str, file: Path) -> None:
        """Upload a file, in parts if it is large."""
        with self._translate_errors("s3:PutObject", key):
            self.client.upload_file(str(file), self.name, key, Config=_TRANSFER)

    def head(self, key: str) -> StoredObject:
        """Return the size and the etag of the object with this key."""
        with self._translate_errors("s3:GetObject", key):
            head = self.client.head_object(Bucket=self.name, Key=key)
            return StoredObject(key, head["ContentLength"], head["ETag"])

    def check_write_permission(self, key: str) -> None:
        """Check the permission to write objects, by creating and aborting an upload."""
        with self._translate_errors("s3:PutObject", key):
            multipart_upload = self.client.create_multipart_upload(Bucket=self.name, Key=key)
        with self._translate_errors("s3:AbortMultipartUpload", key):
            self.client.abort_multipart_upload(Bucket=self.name, Key=key, UploadId=multipart_upload["UploadId"])

    @contextmanager
    def _translate_errors(self, action: str, key: str) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise translate_error(error, self.field, action, f"s3://{self.name}/{key}") from None
        except S3UploadFailedError as error:
            # The message of this error only repeats its cause.
            cause = error.__context__ if isinstance(error.__context__, ClientError) else error
            raise translate_error(cause, self.field, action, f"s3://{self.name}/{key}") from None
