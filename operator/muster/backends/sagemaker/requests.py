"""A job's request with all that it names in its place: the account that it is for, and the code in Amazon S3."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urlsplit

from muster.api.document import quoted
from muster.api.role_arn import account_of
from muster.api.s3_uri import parse
from muster.api.sagemaker_block import block_of
from muster.api.source_spec import GitSource
from muster.api.spec import Job
from muster.aws.client import Aws
from muster.aws.connection import Answer
from muster.aws.errors import AccessDenied, NotFound, Unavailable
from muster.aws.place import Place
from muster.aws.threads import in_own_thread
from muster.backends.sagemaker.image_facts import image_facts
from muster.backends.sagemaker.request.identity import own_tags
from muster.backends.sagemaker.request.render import request
from muster.backends.sagemaker.request.setting import Setting
from muster.backends.sagemaker.request.shared_code import names, shared_uri, with_uri
from muster.backends.sagemaker.request.training_request import Archive, TrainingRequest
from muster.backends.sagemaker.timely_bytes import TimelyBytes
from muster.backends.sagemaker.turns import Turns
from muster.plan.training_job_name import training_job_name
from muster.storage.git_source import FETCH_SECONDS, Sent, ask
from muster.storage.line import Line
from muster.storage.source_archive import SourceArchive, pack
from muster.storage.source_files import SourceFile, SourceFiles, checked, from_texts, refused

FETCHES = 2
"""Commits that are fetched at once: while one host takes its time, there is room for the others'."""

UPLOAD_SECONDS = 600.0
"""For a request to S3: the largest code is uploaded at 0.4 MiB/s."""

ReadConfigMap = Callable[[str, str], Awaitable[SourceFiles]]
"""A ConfigMap's entries as files, by namespace and name. Raises `StorageTrouble` and `ApiError`."""


@dataclass(frozen=True)
class PreparedRequests:
    """Makes requests of jobs, in the accounts that `aws` reaches."""

    aws: Aws
    read_config_map: ReadConfigMap
    _fetching: Turns = field(default_factory=lambda: Turns(FETCHES))
    _packing: Turns = field(default_factory=lambda: Turns(1))
    """Code is in memory some three times while it is packed, and its owner says how large it is."""

    async def prepare(self, job: Job, attempt: int, place: Place) -> Mapping[str, object]:
        """CreateTrainingJob's body, its code uploaded.

        Raises `InvalidResource`, `StorageTrouble`, AwsError, and `ApiError` while the API server doesn't answer.
        """
        role = block_of(job.spec).role or ""
        name = training_job_name(job.metadata, attempt)
        # The account that the configuration was asked about, whosever the operator's credentials are by now.
        setting = Setting(place.region, account_of(role), name, tags=own_tags(job, attempt))
        made: TrainingRequest = request(job, setting, image_facts())
        if made.archive is None:
            return made.body
        for uri, content in made.archive.objects.items():
            await self._put(uri, content, made.archive.kms_key, place)
        return await self._with_code(job, made, made.archive, place) if made.archive.uri else made.body

    async def _with_code(self, job: Job, made: TrainingRequest, archive: Archive, place: Place) -> Mapping[str, object]:
        """The request's body, its code in its place: uploaded once, however many training jobs have the same."""
        source, owner = job.spec.source, job.metadata.namespace
        if source is None or source.git is None:
            async with self._packing.turn(owner, ""):
                return await self._upload(job, made, archive, await self._source(job), place)
        async with self._fetching.turn(owner, urlsplit(source.git.url).netloc):
            sent = await _sent(source.git)
            try:
                # what was sent lies on disk: it waits there until there is memory for it
                async with self._packing.turn(owner, ""):
                    return await self._upload(job, made, archive, await in_own_thread(sent.files), place)
            finally:
                sent.close()

    async def _upload(
        self, job: Job, made: TrainingRequest, archive: Archive, own: SourceFiles, place: Place
    ) -> Mapping[str, object]:
        packed = await _packed(own, archive)
        block = job.spec.sagemaker
        shared = shared_uri(archive.uri, made.training_job, packed)
        # who wants the SDK's own request gets it to the letter
        is_shared = (block is None or block.rank_reports != "Off") and names(made.body, archive.uri)
        if not is_shared:
            await self._put(archive.uri, packed.data, archive.kms_key, place)
            return made.body
        if not await self._is_there(shared, packed.data, place):
            await self._put(shared, packed.data, archive.kms_key, place)
        return with_uri(made.body, archive.uri, shared)

    async def _is_there(self, uri: str, content: bytes, place: Place) -> bool:
        """Whether it lies there as it is: jobs of others may write to the bucket, and know the place beforehand."""
        try:
            found = await self._ask(place, "HeadObject", uri, {"ChecksumMode": "ENABLED"})
        except (NotFound, AccessDenied):
            # S3 says "denied" of what isn't there to who may not list; who may not read either uploads it again
            return False
        return found.get("ChecksumSHA256") == _checksum(content)

    async def _put(self, uri: str, content: bytes, kms_key: str, place: Place) -> None:
        encrypted = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key} if kms_key else {}
        wanted = {
            "Body": TimelyBytes(content, UPLOAD_SECONDS),
            "ChecksumAlgorithm": "SHA256",
            "ChecksumSHA256": _checksum(content),
            **encrypted,
        }
        await self._ask(place, "PutObject", uri, wanted)

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


async def _sent(source: GitSource) -> Sent:
    line = Line(FETCH_SECONDS)
    try:
        return await in_own_thread(lambda: ask(source, line))
    except asyncio.CancelledError:
        # its thread would listen on
        line.cut()
        raise


async def _packed(own: SourceFiles, archive: Archive) -> SourceArchive:
    taken = min(own.keys() & archive.files.keys(), default=None)
    if taken is not None:
        raise refused("spec.source", f"{quoted(taken)} is the name of a file that muster puts there; rename it")
    files = {**own, **{path: SourceFile(data) for path, data in archive.files.items()}}
    return await in_own_thread(lambda: pack(checked(files, "spec.source")))


def _checksum(content: bytes) -> str:
    """What S3 works out itself of an object that is uploaded, and nobody can say otherwise."""
    return b64encode(sha256(content).digest()).decode("ascii")
