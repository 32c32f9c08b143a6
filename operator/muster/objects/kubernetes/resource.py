"""A DistributedTrainingJob as the API server sent it, read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from muster.api.backends import BackendName, holder_of
from muster.api.document import JSON, Document
from muster.api.extent import MAX_DEPTH
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import mapping, whole
from muster.api.spec.job import Job
from muster.api.status.reader import status_of
from muster.api.status.rules import status_problems
from muster.api.status.status import Status
from muster.api.timestamps import from_text
from muster.api.validation.all_rules import LASTING_RULES, RULES
from muster.api.validation.validate import MAX_SPEC_BYTES, validate
from muster.objects.kubernetes.job_source import ROOM, part_of
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.reading import left_out

NO_ROOM = "NoRoom"
"""The reason of a job that is refused until there is memory for it."""

_SPEC_REMEDY = (
    f"A spec has at most {MAX_SPEC_BYTES} bytes and {MAX_DEPTH} levels: delete the job, and apply it again with "
    "data in a file or a ConfigMap, and a template that is a pod's"
)


@dataclass(frozen=True)
class Resource:
    """One version of a job's resource.

    `job` is what its spec says, or what is wrong with it. `status` is what can be read of `written`, the status as it
    is stored; `unclear` is what can't be of that which decides: nothing may be done for such a job. `deleted_at` is
    when it was deleted (Unix seconds), to stay only until all of `finalizers` are taken off. `waits_for_room`: its
    spec and status are not held, because others take what memory there is.
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
    unclear: tuple[FieldProblem, ...]
    status_fields: Mapping[str, JSON] = field(repr=False)
    waits_for_room: bool = False

    @property
    def is_leaving(self) -> bool:
        """Whether it has been deleted."""
        return self.deleted_at is not None

    @property
    def is_held(self) -> bool:
        """Whether it stays until muster lets it go."""
        return self.holder is not None

    @property
    def holder(self) -> BackendName | None:
        """The backend whose finalizer it bears: whatever its spec has become, that one lets it go."""
        return holder_of(self.finalizers)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def is_newer_than(self, other: "Resource") -> bool:
        """Whether this is a later version of the same resource."""
        return int(self.version) > int(other.version)


def read_resource(source: Object, previous: Resource | None = None) -> Resource:
    """Read a resource; `previous` is an earlier version of it, whose spec need not be read again."""
    metadata, missing = mapping(source.get("metadata")), left_out(source)
    generation = whole(metadata.get("generation")) or 0
    written = part_of(source, "status")
    uid, status = str(metadata.get("uid")), status_of({"status": dict(written)})
    is_known = (
        previous is not None
        and (previous.uid, previous.generation) == (uid, generation)
        and not previous.waits_for_room
    )
    return Resource(
        namespace=str(metadata.get("namespace")),
        name=str(metadata.get("name")),
        uid=uid,
        version=str(metadata.get("resourceVersion")),
        generation=generation,
        created_at=_time(metadata.get("creationTimestamp")) or 0.0,
        deleted_at=_time(metadata.get("deletionTimestamp")),
        finalizers=_texts(metadata.get("finalizers")),
        job=previous.job
        if previous is not None and is_known and ROOM not in missing
        else _job(source, missing, status),
        status=status,
        unclear=(*_left_out_of_status(missing), *status_problems(written)),
        status_fields=written,
        waits_for_room=ROOM in missing,
    )


def _job(source: Object, missing: Mapping[str, str], status: Status) -> Job | InvalidResource:
    if ROOM in missing:
        return InvalidResource((FieldProblem("", missing[ROOM]),), reason=NO_ROOM)
    if "spec" in missing:
        return InvalidResource((FieldProblem("spec", f"{missing['spec']}. {_SPEC_REMEDY}"),))
    rules = LASTING_RULES if status.was_started else RULES
    try:
        return validate(Document({**source, "spec": dict(part_of(source, "spec"))}, "the resource"), rules)
    except InvalidResource as invalid:
        # Its traceback would keep the spec, parsed, for as long as the refusal is known.
        return invalid.with_traceback(None)


def _left_out_of_status(missing: Mapping[str, str]) -> Iterator[FieldProblem]:
    """What decides about the job, and can't be known."""
    for path, why in missing.items():
        if path not in {"spec", ROOM}:
            yield FieldProblem(path, why)


def _time(value: JSON) -> float | None:
    return from_text(value) if isinstance(value, str) else None


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
