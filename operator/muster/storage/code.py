"""Download a job's code to the working directory of its command. These functions block their thread."""
# ruff: noqa: PLC0415 - import clients of git and S3 only when they are needed

from __future__ import annotations

import io
from pathlib import Path

from muster.api.document import quote
from muster.api.s3_uri import S3Uri, parse
from muster.render.storage.errors import FOLDER_UNUSABLE, GIT_TOKEN_MISSING, StorageError
from muster.render.storage.git_folder import GIT_FIELD, GitFolder
from muster.render.storage.git_token import GIT_TOKEN_VARIABLE, parse_token
from muster.render.storage.source_files import (
    MAX_BYTES,
    SourceFile,
    SourceFiles,
    check_files,
    make_files,
    make_source_refused_error,
)
from muster.render.storage.storage_plan import CodePlan
from muster.storage.dependencies import StorageDependencies
from muster.storage.retry import retry
from muster.storage.source_folder import read_archive, write_files


def download_code(plan: CodePlan, folder: Path, config_map: Path | None, dependencies: StorageDependencies) -> None:
    """Write the job's code to `folder`. `config_map` is the folder of its ConfigMap. Raises `StorageError`."""
    files = read_code(plan, config_map, dependencies)
    _write_files(files, folder)
    dependencies.report(f"code: {len(files)} {'file' if len(files) == 1 else 'files'}")


def read_code(plan: CodePlan, config_map: Path | None, dependencies: StorageDependencies) -> SourceFiles:
    """Read the files of the job's code from their source. Raises `StorageError`."""
    if plan.git is not None:
        # Only git needs dulwich.
        from muster.storage.git.source import fetch_commit

        repository, token = plan.git, _get_token(plan.git, dependencies)
        return retry(lambda: fetch_commit(repository, token), dependencies.sleep)
    if plan.archive is not None:
        return _read_archive(parse(plan.archive), dependencies)
    if plan.config_map is not None:
        return _read_config_map(plan.config_map, config_map)
    return check_files(make_files(plan.files), "spec.source.inline")


def _get_token(repository: GitFolder, dependencies: StorageDependencies) -> str | None:
    """Return the token for the repository; None if the job sets no token."""
    if repository.username is None:
        return None
    if dependencies.git_token is None:
        message = f"the job's code needs a token: set {GIT_TOKEN_VARIABLE} for `muster run`"
        raise StorageError(GIT_TOKEN_MISSING, f"{GIT_FIELD}.secretKeyRef: {message}")
    return parse_token(dependencies.git_token.encode("utf-8", "surrogateescape"), GIT_TOKEN_VARIABLE)


def _read_archive(uri: S3Uri, dependencies: StorageDependencies) -> SourceFiles:
    # Only S3 needs boto3.
    from muster.storage.s3.bucket import Bucket

    field = "spec.source.s3.uri"
    bucket = Bucket(dependencies.get_s3_client(), uri.bucket, field)
    stored_object = retry(lambda: bucket.head(uri.key), dependencies.sleep)
    if stored_object.size > MAX_BYTES:
        raise make_source_refused_error(
            field, f"the archive has more than {MAX_BYTES // 2**20} MiB; data belongs in spec.inputs"
        )

    def read() -> bytes:
        data = io.BytesIO()
        bucket.read(stored_object, 0, stored_object.size, data.write)
        return data.getvalue()

    return read_archive(io.BytesIO(retry(read, dependencies.sleep)), field)


def _read_config_map(name: str, folder: Path | None) -> SourceFiles:
    field = "spec.source.configMap"
    if folder is None:
        raise make_source_refused_error(
            field,
            f"ConfigMap {quote(name)} isn't on this machine; use spec.source.inline",
        )
    try:
        # The kubelet also creates symbolic links to folders.
        entries = {file.name: SourceFile(file.read_bytes()) for file in folder.iterdir() if file.is_file()}
    except OSError as error:
        raise make_source_refused_error(field, str(error)) from None
    return check_files(entries, field)


def _write_files(files: SourceFiles, folder: Path) -> None:
    try:
        write_files(files, folder)
    except OSError as error:
        raise StorageError(FOLDER_UNUSABLE, f"spec.source: the code can't be written: {error}") from None
