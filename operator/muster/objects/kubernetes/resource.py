"""Parse a DistributedTrainingJob from the API server's object."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from muster.api.backends import BackendName, find_finalizing_backend
from muster.api.document import JSON, Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import read_integer, read_mapping, read_string
from muster.api.names import RESTART_ANNOTATION, SOURCE_ANNOTATION
from muster.api.size_limits import MAX_DEPTH
from muster.api.spec.job import Job
from muster.api.status.reader import read_status
from muster.api.status.rules import find_status_problems
from muster.api.status.status import Status
from muster.api.timestamps import parse_timestamp
from muster.api.validation.all_rules import RULES, RULES_AFTER_START
from muster.api.validation.validate import MAX_SPEC_BYTES, validate
from muster.objects.kubernetes.job_source import MISSING_MEMORY, parse_part
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.object_parser import read_missing_parts

NO_ROOM = "NoRoom"
"""The reason for a job that waits until memory is available for its spec."""

_SPEC_REMEDY = (
    f"A spec has at most {MAX_SPEC_BYTES} bytes and {MAX_DEPTH} levels: delete the job, and apply it again with "
    "data in a file or a ConfigMap, and a template that is a pod's"
)


@dataclass(frozen=True)
class Resource:
    """One version of a job's resource.

    `job` is the valid spec, or its errors. `status` is the readable part of the stored status `status_fields`.
    `status_problems` are the problems of its unreadable parts. muster doesn't act on a job that has some.
    `deleted_at` is the time of the deletion request (Unix seconds); the resource exists until all `finalizers` are
    removed. `restart_request` is the value of the annotation that requests a restart; None without it.
    `source_name` is the ConfigMap that the annotation of edited code names; None without it. `waits_for_memory`
    is set if muster dropped the spec and the status because memory is short.
    """

    namespace: str
    name: str
    uid: str
    version: str
    generation: int
    created_at: float
    deleted_at: float | None
    finalizers: tuple[str, ...]
    job: Job | InvalidResource
    status: Status
    status_problems: tuple[FieldProblem, ...]
    status_fields: Mapping[str, JSON] = field(repr=False)
    restart_request: str | None = None
    source_name: str | None = None
    waits_for_memory: bool = False

    @property
    def is_terminating(self) -> bool:
        """Whether the resource's deletion was requested."""
        return self.deleted_at is not None

    @property
    def has_finalizer(self) -> bool:
        """Whether the resource has one of muster's finalizers."""
        return self.finalizing_backend is not None

    @property
    def finalizing_backend(self) -> BackendName | None:
        """The backend whose finalizer the resource has, if any. The spec may name another backend."""
        return find_finalizing_backend(self.finalizers)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def is_newer_than(self, other: "Resource") -> bool:
        """Whether this is a later version of the same resource."""
        return int(self.version) > int(other.version)


def is_newer(source: Object, resource: Resource) -> bool:
    """Whether `source` is a later version of the same resource, without parsing it."""
    version = str(read_mapping(source.get("metadata")).get("resourceVersion"))
    return not version.isdecimal() or int(version) > int(resource.version)


def read_resource(source: Object, previous: Resource | None = None) -> Resource:
    """Parse a resource. If `previous`, an earlier version, has the same generation, reuse its parsed spec."""
    metadata, missing = read_mapping(source.get("metadata")), read_missing_parts(source)
    annotations = read_mapping(metadata.get("annotations"))
    generation = read_integer(metadata.get("generation")) or 0
    stored_status = parse_part(source, "status")
    uid, status = str(metadata.get("uid")), read_status({"status": dict(stored_status)})
    is_unchanged = (
        previous is not None
        and (previous.uid, previous.generation) == (uid, generation)
        and not previous.waits_for_memory
    )
    return Resource(
        namespace=str(metadata.get("namespace")),
        name=str(metadata.get("name")),
        uid=uid,
        version=str(metadata.get("resourceVersion")),
        generation=generation,
        created_at=_read_time(metadata.get("creationTimestamp")) or 0.0,
        deleted_at=_read_time(metadata.get("deletionTimestamp")),
        finalizers=_read_texts(metadata.get("finalizers")),
        job=previous.job
        if previous is not None and is_unchanged and MISSING_MEMORY not in missing
        else _read_job(source, missing, status),
        status=status,
        status_problems=(*_list_missing_status_parts(missing), *find_status_problems(stored_status)),
        status_fields=stored_status,
        restart_request=read_string(annotations.get(RESTART_ANNOTATION)) or None,
        source_name=read_string(annotations.get(SOURCE_ANNOTATION)) or None,
        waits_for_memory=MISSING_MEMORY in missing,
    )


def _read_job(source: Object, missing_parts: Mapping[str, str], status: Status) -> Job | InvalidResource:
    if MISSING_MEMORY in missing_parts:
        return InvalidResource((FieldProblem("", missing_parts[MISSING_MEMORY]),), reason=NO_ROOM)
    if "spec" in missing_parts:
        return InvalidResource((FieldProblem("spec", f"{missing_parts['spec']}. {_SPEC_REMEDY}"),))
    rules = RULES_AFTER_START if status.was_ever_started else RULES
    try:
        return validate(Document({**source, "spec": dict(parse_part(source, "spec"))}, "the resource"), rules)
    except InvalidResource as invalid:
        # With its traceback, the exception would keep the parsed spec in memory.
        return invalid.with_traceback(None)


def _list_missing_status_parts(missing_parts: Mapping[str, str]) -> Iterator[FieldProblem]:
    """Yield the problems of missing parts of the status."""
    for path, reason in missing_parts.items():
        if path not in {"spec", MISSING_MEMORY}:
            yield FieldProblem(path, reason)


def _read_time(value: JSON) -> float | None:
    return parse_timestamp(value) if isinstance(value, str) else None


def _read_texts(value: JSON) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
