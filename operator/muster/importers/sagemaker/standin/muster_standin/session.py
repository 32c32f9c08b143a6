"""The stand-in for the SDK's Session, which has the region and the bucket and uploads no files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from .arguments import bind_arguments
from .aws import BotoSession, build_role_arn
from .errors import UnsupportedOperation
from .state import get_state
from .unknown import UnknownValue

PARAMETERS = (
    "boto_session",
    "sagemaker_client",
    "sagemaker_runtime_client",
    "sagemaker_featurestore_runtime_client",
    "default_bucket",
    "settings",
    "sagemaker_metrics_client",
    "sagemaker_config",
    "default_bucket_prefix",
)
"""The parameters of sagemaker.Session in order (SDK 2.257.7)."""


class Session:
    """Replaces sagemaker.Session. It has the region, the bucket and the prefix."""

    def __init__(self, *positional: object, **keywords: object) -> None:
        arguments = bind_arguments("sagemaker.Session", PARAMETERS, positional, keywords)
        boto = arguments.get("boto_session")
        if boto is not None and not isinstance(boto, BotoSession):
            raise UnsupportedOperation("sagemaker.Session(boto_session=...): a boto3.Session() is expected")
        if arguments.get("sagemaker_config"):
            raise UnsupportedOperation(
                "sagemaker.Session(sagemaker_config=...): set its values in the script's estimators"
            )
        self.boto_session = boto or BotoSession()
        self.configured_bucket = _to_text(arguments.get("default_bucket"))
        self.default_bucket_prefix = _to_text(arguments.get("default_bucket_prefix"))
        self.local_mode = False

    @property
    def boto_region_name(self) -> str:
        return self.boto_session.region_name

    def default_bucket(self) -> str:
        caller = "session.default_bucket()"
        return (
            self.configured_bucket
            or f"sagemaker-{self.boto_region_name}-{get_state().account_options.require_account(caller)}"
        )

    def account_id(self) -> str:
        return get_state().account_options.require_account("session.account_id()")

    def get_caller_identity_arn(self) -> str:
        return get_state().account_options.require_role("session.get_caller_identity_arn()")

    def expand_role(self, role: str) -> str:
        return build_role_arn(role)

    def upload_data(
        self,
        path: str,
        bucket: str | None = None,
        key_prefix: str = "data",
        callback: object = None,  # noqa: ARG002 - the SDK's signature
        extra_args: object = None,  # noqa: ARG002 - the SDK's signature
    ) -> str:
        """Return the URI of the upload, without uploading the files."""
        path = str(path)
        if bucket is None:
            bucket, key_prefix = self.default_bucket(), "/".join(filter(None, (self.default_bucket_prefix, key_prefix)))
        uri = f"s3://{bucket}/{key_prefix}"
        if _is_folder(path):
            _warn_about_upload(path, f"aws s3 cp --recursive {shlex.quote(path)} {shlex.quote(uri)}")
            return uri
        uri = f"{uri}/{Path(path).name}"
        _warn_about_upload(path, f"aws s3 cp {shlex.quote(path)} {shlex.quote(uri)}")
        return uri

    def upload_string_as_file_body(self, body: str, bucket: str, key: str, kms_key: str | None = None) -> str:  # noqa: ARG002 - the SDK's signature
        """Return the URI of the text, without writing it."""
        uri = f"s3://{bucket}/{key}"
        get_state().recorder.warn(f"muster does not write {uri}: upload its text before the job starts")
        return uri

    def __getattr__(self, name: str) -> UnknownValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return get_state().create_unknown(f"sagemaker.Session().{name}")


def get_execution_role(sagemaker_session: object = None, use_default: object = False) -> str:  # noqa: ARG001, FBT002 - the SDK's signature
    """Replaces sagemaker.get_execution_role."""
    return get_state().account_options.require_role("get_execution_role()")


class S3Uploader:
    """Replaces sagemaker.s3.S3Uploader."""

    @staticmethod
    def upload(local_path: str, desired_s3_uri: str, *_: object, **__: object) -> str:
        bucket, prefix = _split_uri(desired_s3_uri)
        return Session().upload_data(local_path, bucket, prefix)

    @staticmethod
    def upload_string_as_file_body(body: str, desired_s3_uri: str, *_: object, **__: object) -> str:
        bucket, key = _split_uri(desired_s3_uri)
        return Session().upload_string_as_file_body(body, bucket, key)


def s3_path_join(*parts: str | None, with_end_slash: bool = False) -> str:
    """Join the parts with single slashes, as sagemaker.s3.s3_path_join does."""
    path = re.sub("/+", "/", "/".join(part for part in parts if part)).strip("/")
    path = re.sub("^s3:/?", "s3://", path)
    return f"{path}/" if with_end_slash and path and not path.endswith("/") else path


def _split_uri(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


def _is_folder(path: str) -> bool:
    """Whether the path is a folder, which the notebook may have written.

    Raises `UnsupportedOperation` if it does not exist.
    """
    absolute_path, notebook_files = Path(path).resolve(), get_state().notebook_files
    if absolute_path.is_dir() or any(absolute_path in file.parents for file in notebook_files):
        return True
    if absolute_path.exists() or absolute_path in notebook_files:
        return False
    raise UnsupportedOperation(
        f"upload_data({path!r}): neither a file nor a folder has this name, and the URI depends on which of them "
        "exists: run `muster import` in the folder with the data, or create an empty file or folder"
    )


def _warn_about_upload(path: str, command: str) -> None:
    get_state().recorder.warn(f"muster does not upload {path}; before the job starts, run {command}")


def _to_text(value: object) -> str | None:
    return None if value is None else str(value)
