"""Prepare a job's CreateTrainingJob request: choose the account, and upload the code to Amazon S3."""

from __future__ import annotations

import asyncio
import hashlib
import io
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import BinaryIO
from urllib.parse import urlsplit

from muster.api.document import quote
from muster.api.role_arn import parse_account_id
from muster.api.s3_uri import parse
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.source import GitSource, SecretKeyRef
from muster.backends.sagemaker.deadline_file import DeadlineFile
from muster.backends.sagemaker.preemptible_slots import PreemptibleSlots, SlotPreempted
from muster.clients.aws.client import Aws
from muster.clients.aws.connection import Response
from muster.clients.aws.threads import run_in_new_thread
from muster.core.training_job.name import build_training_job_name
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AccessDenied, NotFound, Unavailable
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.request.identity import make_job_tags
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.shared_code import contains_uri, get_shared_uri, replace_uri
from muster.render.sagemaker.request.training_request import Archive, TrainingRequest
from muster.render.storage.errors import GIT_TOO_SLOW, StorageError
from muster.render.storage.git_folder import GIT_FIELD
from muster.render.storage.source_archive import SourceArchive, make_members, pack_files
from muster.render.storage.source_files import (
    MAX_BYTES,
    SourceFile,
    SourceFiles,
    check_files,
    make_files,
    make_source_refused_error,
)
from muster.render.storage.storage_plan import make_git_folder
from muster.storage.archive.confinement import Limits
from muster.storage.archive.isolated_archive import make_archive
from muster.storage.archive.messages import ArchiveRequest
from muster.storage.git.address_policy import AddressPolicy

MAX_FETCHES = 4
"""The maximum number of concurrent fetches of commits, one per namespace. Each may use MEMORY_BYTES."""

MAX_UPLOADS = 8
"""The maximum number of concurrent uploads of code from jobs or ConfigMaps, of at most 2 MiB each."""

GUARANTEED_SECONDS = 30.0
"""The time that each job's code gets, even if others wait: a usual commit takes 2 s, the largest about 30 s."""

FETCH_SECONDS = 600.0
"""The maximum time to fetch a commit if no other namespace waits: enough for the largest at 0.4 MiB/s."""

MEMORY_BYTES = 128 * 2**20
"""The memory limit of a process that fetches a commit. It reads and writes in chunks, so 30 MiB are enough for any
commit."""

CPU_SECONDS = 120
"""The limit of processor time: the largest commit takes about 20 s."""

LIMITS = Limits(
    memory_bytes=MEMORY_BYTES,
    address_bytes=8 * MEMORY_BYTES,
    cpu_seconds=CPU_SECONDS,
    # enough for the unpacked commit and its metadata
    file_bytes=2 * MAX_BYTES + 16 * 2**20,
    seconds=FETCH_SECONDS + 2 * CPU_SECONDS,
)

UPLOAD_SECONDS = 600.0
"""The timeout of a request to S3: enough for the largest code at 0.4 MiB/s."""

ReadConfigMap = Callable[[str, str], Awaitable[SourceFiles]]
"""Returns a ConfigMap's entries as files, by namespace and name. Raises `StorageError` and `ApiError`."""

ReadToken = Callable[[str, SecretKeyRef], Awaitable[str]]
"""Returns the token in a Secret of a namespace. Raises `StorageError` and `ApiError`."""


def _allow_any_address(_namespace: str, _url: str) -> AddressPolicy:
    return AddressPolicy.ANY


@dataclass(frozen=True)
class RequestPreparer:
    """Prepares the requests of jobs.

    `get_address_policy` returns the permitted addresses of a git host, by namespace and URL.
    """

    aws: Aws
    read_config_map: ReadConfigMap
    read_token: ReadToken
    get_address_policy: Callable[[str, str], AddressPolicy] = _allow_any_address
    _fetching: PreemptibleSlots = field(default_factory=lambda: PreemptibleSlots(MAX_FETCHES, GUARANTEED_SECONDS))
    _uploading: PreemptibleSlots = field(default_factory=lambda: PreemptibleSlots(MAX_UPLOADS, GUARANTEED_SECONDS))

    async def prepare(self, job: Job, attempt: int, aws_access: AwsAccess) -> Mapping[str, object]:
        """Return CreateTrainingJob's body, after uploading the code.

        Raises `InvalidResource`, `StorageError`, AwsError, and `ApiError` if the API server doesn't respond.
        """
        role = get_sagemaker_block(job.spec).role or ""
        name = build_training_job_name(job.metadata, attempt)
        # Use the configured role's account, even if the operator's credentials have changed.
        settings = RequestSettings(aws_access.region, parse_account_id(role), name, tags=make_job_tags(job, attempt))
        training_request: TrainingRequest = render_request(job, settings, load_image_facts())
        if training_request.archive is None:
            return training_request.body
        for uri, content in training_request.archive.objects.items():
            checksum = b64encode(hashlib.sha256(content).digest()).decode("ascii")
            await self._send_bytes(uri, io.BytesIO(content), checksum, training_request.archive.kms_key, aws_access)
        return (
            await self._add_code(job, training_request, training_request.archive, aws_access)
            if training_request.archive.uri
            else training_request.body
        )

    async def _add_code(
        self, job: Job, training_request: TrainingRequest, archive: Archive, aws_access: AwsAccess
    ) -> Mapping[str, object]:
        """Upload the code, and return the request's body. Training jobs with the same code share one upload."""
        source, owner = job.spec.source, job.metadata.namespace
        with TemporaryFile() as file:
            if source is not None and source.git is not None:
                return await self._add_commit(job, source.git, training_request, archive, aws_access, file)
            try:
                async with self._uploading.turn(owner):
                    source_archive = await _pack_with_added_files(await self._get_source(job), archive, file)
                    return await self._upload(job, training_request, archive, source_archive, file, aws_access)
            except SlotPreempted:
                problem_text = (
                    f"The upload of the job's code took more than {GUARANTEED_SECONDS:.0f} s, and other jobs waited."
                )
                raise Unavailable(problem_text) from None

    async def _add_commit(  # noqa: PLR0917
        self,
        job: Job,
        git: GitSource,
        training_request: TrainingRequest,
        archive: Archive,
        aws_access: AwsAccess,
        file: BinaryIO,
    ) -> Mapping[str, object]:
        owner, host = job.metadata.namespace, urlsplit(git.url).netloc
        try:
            async with self._fetching.turn(owner, host):
                archive_request = await self._make_archive_request(owner, git, archive)
                source_archive = await make_archive(archive_request, file)
                return await self._upload(job, training_request, archive, source_archive, file, aws_access)
        except SlotPreempted:
            problem_text = (
                f"the code of {quote(host)} was not fetched and uploaded in {GUARANTEED_SECONDS:.0f} s, and jobs of "
                "other namespaces waited; muster tries again"
            )
            raise StorageError(GIT_TOO_SLOW, f"{GIT_FIELD}: {problem_text}", is_retryable=True) from None

    async def _make_archive_request(self, namespace: str, git: GitSource, archive: Archive) -> ArchiveRequest:
        return ArchiveRequest(
            repository=make_git_folder(git),
            limits=LIMITS,
            fetch_seconds=FETCH_SECONDS,
            added=archive.files,
            address_policy=self.get_address_policy(namespace, git.url),
            token=None if git.secret_key_ref is None else await self.read_token(namespace, git.secret_key_ref),
        )

    async def _upload(  # noqa: PLR0917
        self,
        job: Job,
        training_request: TrainingRequest,
        archive: Archive,
        source_archive: SourceArchive,
        file: BinaryIO,
        aws_access: AwsAccess,
    ) -> Mapping[str, object]:
        block = job.spec.sagemaker
        shared_uri = get_shared_uri(archive.uri, training_request.training_job, source_archive)
        # with `rankReports: Off`, keep the request exactly as the SageMaker SDK's
        is_shared = (block is None or block.rank_reports != "Off") and contains_uri(training_request.body, archive.uri)
        if not is_shared:
            await self._send_bytes(archive.uri, file, source_archive.checksum, archive.kms_key, aws_access)
            return training_request.body
        if not await self._is_uploaded(shared_uri, source_archive.checksum, aws_access):
            await self._send_bytes(shared_uri, file, source_archive.checksum, archive.kms_key, aws_access)
        return replace_uri(training_request.body, archive.uri, shared_uri)

    async def _is_uploaded(self, uri: str, checksum: str, aws_access: AwsAccess) -> bool:
        """Whether S3 has this object with the same content: other users may write to the bucket."""
        try:
            head = await self._request_s3(aws_access, "HeadObject", uri, {"ChecksumMode": "ENABLED"})
        except (NotFound, AccessDenied):
            # without the permission to list, S3 responds "access denied" for a missing object: upload it
            return False
        return head.get("ChecksumSHA256") == checksum

    async def _send_bytes(self, uri: str, file: BinaryIO, checksum: str, kms_key: str, aws_access: AwsAccess) -> None:
        """Upload a file. S3 verifies `checksum`."""
        encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key} if kms_key else {}
        file.seek(0)
        body = DeadlineFile(file, UPLOAD_SECONDS)
        parameters = {"Body": body, "ChecksumAlgorithm": "SHA256", "ChecksumSHA256": checksum, **encryption}
        try:
            await self._request_s3(aws_access, "PutObject", uri, parameters)
        finally:
            # a thread may still read the file
            body.cut()

    async def _request_s3(
        self, aws_access: AwsAccess, operation: str, uri: str, request: Mapping[str, object]
    ) -> Response:
        """Send a request about the object at `uri` to S3. Raises AwsError."""
        location = parse(uri)
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                return await self.aws.send_request(
                    aws_access, "s3", operation, {"Bucket": location.bucket, "Key": location.key, **request}
                )
        except TimeoutError:
            minutes = f"{UPLOAD_SECONDS / 60:.3g} minutes"
            raise Unavailable(f"Amazon S3 has not completed {operation} of {uri} within {minutes}.") from None

    async def _get_source(self, job: Job) -> SourceFiles:
        source = job.spec.source
        if source is None:
            return {}
        if source.config_map is not None:
            return await self.read_config_map(job.metadata.namespace, source.config_map.name)
        return {} if source.inline is None else make_files(source.inline.files)


async def _pack_with_added_files(code: SourceFiles, archive: Archive, into: BinaryIO) -> SourceArchive:
    conflict = min(code.keys() & archive.files.keys(), default=None)
    if conflict is not None:
        raise make_source_refused_error(
            "spec.source", f"{quote(conflict)} is the name of a file that muster adds; rename it"
        )
    files = {**code, **{path: SourceFile(data) for path, data in archive.files.items()}}
    return await run_in_new_thread(lambda: pack_files(make_members(check_files(files, "spec.source")), into))
