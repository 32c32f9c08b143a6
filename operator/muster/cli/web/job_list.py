"""The jobs of a cluster as a list that a watch keeps up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from muster.api.json_fields import read_integer, read_mapping, read_string
from muster.cli.board.printable import replace_unprintable
from muster.cli.web.source import JobEntry, JobNotFound
from muster.clients.kubernetes.client import Change
from muster.objects.kubernetes.job_source import MAX_STATUS_TEXT_BYTES
from muster.objects.kubernetes.kinds import JOBS, Object, ParseOptions

SHOWN_JOBS = replace(
    JOBS,
    parse_options=ParseOptions(
        metadata=frozenset({"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"}),
        annotations={},
        parts=frozenset({"status"}),
        max_bytes={"status": MAX_STATUS_TEXT_BYTES},
    ),
)
"""The jobs' resources with only what the page shows: not their specs, which may have secrets."""

MAX_JOBS = 10_000
"""The watch stores this many jobs. It ignores others, until one of these is deleted."""

MAX_LISTED = 200
"""The list shows this many of the newest jobs."""


@dataclass(frozen=True)
class ListedJob:
    """A job in one version. `created_at` is in RFC 3339."""

    namespace: str
    name: str
    version: str
    created_at: str
    phase: str
    world: int

    @property
    def key(self) -> str:
        """What identifies it in a URL: a namespace has no dot."""
        return f"{self.namespace}.{self.name}"


@dataclass
class JobList:
    """The jobs by key. `take` gets the changes of a watch."""

    _jobs: dict[str, ListedJob] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        """Apply a change."""
        job = read_listed_job(change.object)
        if change.type == "DELETED":
            self._jobs.pop(job.key, None)
        elif job.key in self._jobs or len(self._jobs) < MAX_JOBS:
            self._jobs[job.key] = job

    def find(self, key: str) -> ListedJob:
        """Return a job. Raises `JobNotFound`."""
        job = self._jobs.get(key)
        if job is None:
            raise JobNotFound(describe_missing(key))
        return job

    def list_newest(self) -> Sequence[JobEntry]:
        """Return the newest jobs."""
        newest = sorted(self._jobs.values(), key=lambda job: (job.created_at, job.key), reverse=True)[:MAX_LISTED]
        return [JobEntry(job.key, job.name, job.phase, job.world, f"{job.namespace}/{job.name}") for job in newest]


def describe_missing(key: str) -> str:
    """Return the sentence about a job that does not exist, or that the reader may not see."""
    namespace, _, name = key.partition(".")
    return f"there is no job {name} in the namespace {namespace} that you may see"


def read_listed_job(resource: Object) -> ListedJob:
    """Read a resource. Users may edit it, so its texts have no control characters."""
    metadata, status = read_mapping(resource.get("metadata")), read_mapping(resource.get("status"))
    return ListedJob(
        namespace=read_string(metadata.get("namespace")),
        name=read_string(metadata.get("name")),
        version=read_string(metadata.get("resourceVersion")),
        created_at=read_string(metadata.get("creationTimestamp")),
        phase=replace_unprintable(read_string(status.get("phase"))),
        world=read_integer(read_mapping(status.get("ranks")).get("world")) or 0,
    )
