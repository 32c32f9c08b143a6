"""A DistributedTrainingJob as the API server sent it, read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.api.document import JSON, Document
from muster.api.problems import InvalidResource, Problem
from muster.api.rules import LASTING_RULES, RULES
from muster.api.spec import Job
from muster.api.status import Status
from muster.api.status_reader import status_of
from muster.api.status_rules import status_problems
from muster.api.timestamps import from_text
from muster.api.validate import validate
from muster.kube.answers import mapping
from muster.kube.kinds import Object
from muster.plan.incarnations import was_started

FINALIZER = "muster.dev/training-job"
"""On a resource whose training job may run: nothing in the cluster goes with it, so muster has to see to that."""


@dataclass(frozen=True)
class Resource:
    """One version of a job's resource.

    `job` is what its spec says, or what is wrong with it. `status` is what can be read of `written`, the status as it
    is stored; `unclear` is what can't be of that which decides: nothing may be done for such a job. `deleted_at` is
    when it was deleted (Unix seconds), to stay only until all of `finalizers` are taken off.
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
    unclear: tuple[Problem, ...]
    written: Mapping[str, JSON] = field(repr=False)

    @property
    def is_leaving(self) -> bool:
        """Whether it has been deleted."""
        return self.deleted_at is not None

    @property
    def is_held(self) -> bool:
        """Whether it stays until muster lets it go."""
        return FINALIZER in self.finalizers

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def is_newer_than(self, other: "Resource") -> bool:
        """Whether this is a later version of the same resource."""
        return int(self.version) > int(other.version)


def read_resource(source: Object, known: Resource | None = None) -> Resource:
    """Read a resource; `known` is an earlier version of it, whose spec need not be read again."""
    metadata = mapping(source.get("metadata"))
    generation = _integer(metadata.get("generation"))
    written = mapping(source.get("status"))
    uid, status = str(metadata.get("uid")), status_of(source)
    same = known is not None and (known.uid, known.generation) == (uid, generation)
    return Resource(
        namespace=str(metadata.get("namespace")),
        name=str(metadata.get("name")),
        uid=uid,
        version=str(metadata.get("resourceVersion")),
        generation=generation,
        created_at=_time(metadata.get("creationTimestamp")) or 0.0,
        deleted_at=_time(metadata.get("deletionTimestamp")),
        finalizers=_texts(metadata.get("finalizers")),
        job=known.job if known is not None and same else _job(source, status),
        status=status,
        unclear=status_problems(written),
        written=written,
    )


def _job(source: Object, status: Status) -> Job | InvalidResource:
    rules = LASTING_RULES if was_started(status) else RULES
    try:
        return validate(Document(dict(source), "the resource"), rules)
    except InvalidResource as invalid:
        return invalid


def _integer(value: JSON) -> int:
    return value if isinstance(value, int) else 0


def _time(value: JSON) -> float | None:
    return from_text(value) if isinstance(value, str) else None


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
