"""A job's request with all that it names in its place: the account that it is for, and the code in Amazon S3."""

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

from muster.api.document import quoted
from muster.api.role_arn import account_of
from muster.api.s3_uri import parse
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.source import GitSource, SecretKeyRef
from muster.backends.sagemaker.timely_file import TimelyFile
from muster.backends.sagemaker.turns import TurnCut, Turns
from muster.clients.aws.client import Aws
from muster.clients.aws.connection import Answer
from muster.clients.aws.threads import in_own_thread
from muster.core.training_job.name import training_job_name
from muster.objects.aws.errors import AccessDenied, NotFound, Unavailable
from muster.objects.aws.place import Place
from muster.render.sagemaker.image_facts import image_facts
from muster.render.sagemaker.request.identity import own_tags
from muster.render.sagemaker.request.render import request
from muster.render.sagemaker.request.setting import Setting
from muster.render.sagemaker.request.shared_code import names, shared_uri, with_uri
from muster.render.sagemaker.request.training_request import Archive, TrainingRequest
from muster.render.storage.errors import GIT_TOO_SLOW, StorageError
from muster.render.storage.git_place import ORIGIN
from muster.render.storage.source_archive import SourceArchive, members_of, pack
from muster.render.storage.source_files import MAX_BYTES, SourceFile, SourceFiles, checked, from_texts, refused
from muster.render.storage.storage_plan import git_place
from muster.storage.archive.confinement import Limits
from muster.storage.archive.isolated_archive import make_archive
from muster.storage.archive.order import ArchiveOrder
from muster.storage.git.reach import Reach

FETCHES = 4
"""Commits that are fetched at once, each of another namespace: each may take MEMORY_BYTES of the container's memory."""

UPLOADS = 8
"""Uploads at once of code that is written out in jobs or ConfigMaps, which has a MiB or two."""

PROMISED_SECONDS = 30.0
"""For a job's code, while others wait: a commit of some MiB takes a second or two, the largest one about this."""

FETCH_SECONDS = 600.0
"""For a host to send a commit, while no other namespace waits: the largest one may come at 0.4 MiB/s."""

MEMORY_BYTES = 128 * 2**20
"""Of a process that fetches a commit. It takes 30 MiB for a commit of any size: it reads and writes piece by piece."""

CPU_SECONDS = 120
"""To unpack the largest commit and to pack it again takes some 20 s."""

LIMITS = Limits(
    memory_bytes=MEMORY_BYTES,
    address_bytes=8 * MEMORY_BYTES,
    cpu_seconds=CPU_SECONDS,
    # all that the commit unpacks to, and what says so
    file_bytes=2 * MAX_BYTES + 16 * 2**20,
    seconds=FETCH_SECONDS + 2 * CPU_SECONDS,
)

UPLOAD_SECONDS = 600.0
"""For a request to S3: the largest code is uploaded at 0.4 MiB/s."""

ReadConfigMap = Callable[[str, str], Awaitable[SourceFiles]]
"""A ConfigMap's entries as files, by namespace and name. Raises `StorageError` and `ApiError`."""

ReadToken = Callable[[str, SecretKeyRef], Awaitable[str]]
"""The token in a Secret of a namespace. Raises `StorageError` and `ApiError`."""


def _any(_namespace: str, _url: str) -> Reach:
    return Reach.ANY


@dataclass(frozen=True)
class PreparedRequests:
    """Makes requests of jobs, in the accounts that `aws` reaches.

    `reach` says for a namespace and a URL at which addresses a git host may be asked.
    """

    aws: Aws
    read_config_map: ReadConfigMap
    read_token: ReadToken
    reach: Callable[[str, str], Reach] = _any
    _fetching: Turns = field(default_factory=lambda: Turns(FETCHES, PROMISED_SECONDS))
    _uploading: Turns = field(default_factory=lambda: Turns(UPLOADS, PROMISED_SECONDS))

    async def prepare(self, job: Job, attempt: int, place: Place) -> Mapping[str, object]:
        """CreateTrainingJob's body, its code uploaded.

        Raises `InvalidResource`, `StorageError`, AwsError, and `ApiError` while the API server doesn't answer.
        """
        role = block_of(job.spec).role or ""
        name = training_job_name(job.metadata, attempt)
        # The account that the configuration was asked about, whosever the operator's credentials are by now.
        setting = Setting(place.region, account_of(role), name, tags=own_tags(job, attempt))
        made: TrainingRequest = request(job, setting, image_facts())
        if made.archive is None:
            return made.body
        for uri, content in made.archive.objects.items():
            checksum = b64encode(hashlib.sha256(content).digest()).decode("ascii")
            await self._send_bytes(uri, io.BytesIO(content), checksum, made.archive.kms_key, place)
        return await self._with_code(job, made, made.archive, place) if made.archive.uri else made.body

    async def _with_code(self, job: Job, made: TrainingRequest, archive: Archive, place: Place) -> Mapping[str, object]:
        """The request's body, its code in its place: uploaded once, however many training jobs have the same."""
        source, owner = job.spec.source, job.metadata.namespace
        with TemporaryFile() as file:
            if source is not None and source.git is not None:
                return await self._with_commit(job, source.git, made, archive, place, file)
            try:
                async with self._uploading.turn(owner):
                    packed = await _packed(await self._source(job), archive, file)
                    return await self._upload(job, made, archive, packed, file, place)
            except TurnCut:
                words = f"Amazon S3 has not taken the job's code after {PROMISED_SECONDS:.0f} s, and other jobs waited."
                raise Unavailable(words) from None

    async def _with_commit(  # noqa: PLR0917
        self, job: Job, git: GitSource, made: TrainingRequest, archive: Archive, place: Place, file: BinaryIO
    ) -> Mapping[str, object]:
        owner, host = job.metadata.namespace, urlsplit(git.url).netloc
        try:
            async with self._fetching.turn(owner, host):
                order = await self._order(owner, git, archive)
                packed = await make_archive(order, file)
                return await self._upload(job, made, archive, packed, file, place)
        except TurnCut:
            words = (
                f"the code of {quoted(host)} was not fetched and uploaded after {PROMISED_SECONDS:.0f} s, and jobs of "
                "other namespaces waited; it is tried again"
            )
            raise StorageError(GIT_TOO_SLOW, f"{ORIGIN}: {words}", may_pass=True) from None

    async def _order(self, namespace: str, git: GitSource, archive: Archive) -> ArchiveOrder:
        return ArchiveOrder(
            place=git_place(git),
            limits=LIMITS,
            fetch_seconds=FETCH_SECONDS,
            added=archive.files,
            reach=self.reach(namespace, git.url),
            token=None if git.secret_key_ref is None else await self.read_token(namespace, git.secret_key_ref),
        )

    async def _upload(  # noqa: PLR0917
        self, job: Job, made: TrainingRequest, archive: Archive, packed: SourceArchive, file: BinaryIO, place: Place
    ) -> Mapping[str, object]:
        block = job.spec.sagemaker
        shared = shared_uri(archive.uri, made.training_job, packed)
        # who wants the SDK's own request gets it to the letter
        is_shared = (block is None or block.rank_reports != "Off") and names(made.body, archive.uri)
        if not is_shared:
            await self._send_bytes(archive.uri, file, packed.checksum, archive.kms_key, place)
            return made.body
        if not await self._is_there(shared, packed.checksum, place):
            await self._send_bytes(shared, file, packed.checksum, archive.kms_key, place)
        return with_uri(made.body, archive.uri, shared)

    async def _is_there(self, uri: str, checksum: str, place: Place) -> bool:
        """Whether it lies there as it is: jobs of others may write to the bucket, and know the place beforehand."""
        try:
            head = await self._ask(place, "HeadObject", uri, {"ChecksumMode": "ENABLED"})
        except (NotFound, AccessDenied):
            # S3 says "denied" of what isn't there to who may not list; who may not read either uploads it again
            return False
        return head.get("ChecksumSHA256") == checksum

    async def _send_bytes(self, uri: str, file: BinaryIO, checksum: str, kms_key: str, place: Place) -> None:
        """Upload a file. S3 computes `checksum` of the bytes itself, so it can't be forged."""
        encrypted = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key} if kms_key else {}
        file.seek(0)
        body = TimelyFile(file, UPLOAD_SECONDS)
        wanted = {"Body": body, "ChecksumAlgorithm": "SHA256", "ChecksumSHA256": checksum, **encrypted}
        try:
            await self._ask(place, "PutObject", uri, wanted)
        finally:
            # its thread may be in the middle of it
            body.cut()

    async def _ask(self, place: Place, operation: str, uri: str, request: Mapping[str, object]) -> Answer:
        """What S3 answers of the object at `uri`. Raises AwsError."""
        at = parse(uri)
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                return await self.aws.ask(place, "s3", operation, {"Bucket": at.bucket, "Key": at.key, **request})
        except TimeoutError:
            minutes = f"{UPLOAD_SECONDS / 60:.3g} minutes"
            raise Unavailable(f"Amazon S3 has not carried out {operation} of {uri} after {minutes}.") from None

    async def _source(self, job: Job) -> SourceFiles:
        source = job.spec.source
        if source is None:
            return {}
        if source.config_map is not None:
            return await self.read_config_map(job.metadata.namespace, source.config_map.name)
        return {} if source.inline is None else from_texts(source.inline.files)


async def _packed(own: SourceFiles, archive: Archive, into: BinaryIO) -> SourceArchive:
    taken = min(own.keys() & archive.files.keys(), default=None)
    if taken is not None:
        raise refused("spec.source", f"{quoted(taken)} is the name of a file that muster puts there; rename it")
    files = {**own, **{path: SourceFile(data) for path, data in archive.files.items()}}
    return await in_own_thread(lambda: pack(members_of(checked(files, "spec.source")), into))
