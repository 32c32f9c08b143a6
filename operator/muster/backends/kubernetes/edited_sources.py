"""Read the edited code of `muster rerun` from the ConfigMaps of jobs, and check whose it is."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from muster.api.json_fields import read_mapping, read_string
from muster.api.names import JOB_UID_LABEL
from muster.api.spec.job import Job
from muster.backends.kubernetes.job_state import JobState
from muster.clients.kubernetes.client import Client
from muster.core.edited_source import NO_MEMORY_FOR_SOURCE, RequestedSource
from muster.core.problem import Problem
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS, Object
from muster.objects.kubernetes.names import SOURCE_KEY, build_source_name, is_source_name
from muster.objects.kubernetes.pods import read_owner_uid
from muster_worker.contract.schema import Command
from muster_worker.contract.source import MAX_SOURCE_BYTES, EditedSource


class SourceRefused(Exception):
    """The ConfigMap can't be used as the job's code. The text is the reason."""


SOURCE_SECONDS = 5.0
"""A ConfigMap of edited code is read again only after this time, except for the start of another attempt."""

SOURCE_MISSING = "SourceMissing"
"""The reason of a job whose ranks can't start because someone has deleted their edited code."""

NO_MEMORY = Problem(
    NO_MEMORY_FOR_SOURCE,
    "The ranks wait for their edited code: muster sends so much code to other jobs that it has no memory left for this "
    "job's code; muster tries again",
)
"""The problem of a job whose edited code was read, and finds no memory in the rank store."""


@dataclass(frozen=True)
class EditedSources:
    """Reads the edited code of all jobs. `clock` returns Unix seconds. All methods raise `ApiError`."""

    client: Client
    clock: Callable[[], float]

    async def find(self, job: Job, job_state: JobState, name: str) -> RequestedSource:
        """Find the edited code in ConfigMap `name`."""
        source, now = job_state.requested_source, self.clock()
        if (
            source is not None
            and source.config_map == name
            and now < job_state.requested_source_read_at + SOURCE_SECONDS
        ):
            return source
        try:
            source = RequestedSource(name, (await read_source(self.client, job, name)).sha256)
        except SourceRefused as error:
            source = RequestedSource(name, problem=str(error))
        job_state.requested_source, job_state.requested_source_read_at = source, now
        return source

    async def add_source(self, job: Job, job_state: JobState, command: Command) -> Command | None:
        """Add the edited code to a Start command that has the code's hash.

        Return None if the code is missing. The job then waits for it.
        """
        if command.source is None:
            job_state.source_problem = None
            return command
        sha256, now = command.source.sha256, self.clock()
        # While the code is missing or doesn't fit into memory, each report of an agent leads here. Don't read the code
        # each time, because it is large.
        read_again_at = job_state.attempt_source_read_at + SOURCE_SECONDS
        if job_state.attempt_source == (command.attempt, sha256) and now < read_again_at:
            return None
        job_state.source_problem = None
        name = build_source_name(job.metadata.name, sha256)
        try:
            source = await read_source(self.client, job, name)
            if source.sha256 != sha256:
                raise SourceRefused("its content is not the one in the status")  # noqa: TRY301 - handled as the others
        except SourceRefused as error:
            job_state.attempt_source, job_state.attempt_source_read_at = (command.attempt, sha256), now
            message = f"The ranks wait for their edited code: ConfigMap {name} can't be used: {error}"
            job_state.source_problem = Problem(SOURCE_MISSING, message)
            return None
        job_state.attempt_source, job_state.attempt_source_read_at = (command.attempt, sha256), now
        return replace(command, source=source)


async def read_source(client: Client, job: Job, name: str) -> EditedSource:
    """Read the job's edited code from ConfigMap `name`. Raises `SourceRefused` and `ApiError`.

    The ConfigMap is a tenant's. The job has to own it, so that no job uses code that was sent to another job. Its name
    has to contain the hash of its content.
    """
    # Any text may be here: "." would read all ConfigMaps of the namespace.
    if not is_source_name(job.metadata.name, name):
        own = f"{job.metadata.name}-source-<16 hex digits>"
        raise SourceRefused(f"it does not belong to this job: `muster rerun` creates {own}")
    try:
        stored = await client.get(CONFIG_MAPS, job.metadata.namespace, name)
    except ApiError as error:
        if not error.is_not_found:
            raise
        raise SourceRefused("it does not exist; run `muster rerun` again") from None
    return check_source(stored, job, name)


def check_source(config_map: Object, job: Job, name: str) -> EditedSource:
    """Return the edited code in a ConfigMap. Raises `SourceRefused`."""
    uid = job.metadata.uid
    labels = read_mapping(read_mapping(config_map.get("metadata")).get("labels"))
    if read_owner_uid(config_map) != uid or labels.get(JOB_UID_LABEL) != uid:
        raise SourceRefused("it does not belong to this job, or to an earlier one of its name")
    if config_map.get("immutable") is not True:
        raise SourceRefused("it is not immutable")
    text = read_string(read_mapping(config_map.get("binaryData")).get(SOURCE_KEY))
    try:
        archive = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise SourceRefused(f"its {SOURCE_KEY} is not in Base64") from None
    if not 0 < len(archive) <= MAX_SOURCE_BYTES:
        raise SourceRefused(f"its {SOURCE_KEY} has {len(archive)} bytes; 1 to {MAX_SOURCE_BYTES} are allowed")
    sha256 = hashlib.sha256(archive).hexdigest()
    if name != build_source_name(job.metadata.name, sha256):
        raise SourceRefused(f"its content belongs into ConfigMap {build_source_name(job.metadata.name, sha256)}")
    return EditedSource(sha256, text)
