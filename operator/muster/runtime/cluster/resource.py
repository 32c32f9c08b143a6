"""A DistributedTrainingJob as the API server sent it, read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.api.document import JSON, Document
from muster.api.problems import InvalidResource, Problem
from muster.api.spec import Job
from muster.api.status import Status
from muster.api.status_reader import status_of
from muster.api.status_rules import status_problems
from muster.api.validate import validate
from muster.kube.answers import mapping
from muster.kube.kinds import Object


@dataclass(frozen=True)
class Resource:
    """One version of a job's resource.

    `job` is what its spec says, or what is wrong with it. `status` is what can be read of `written`, the status as it
    is stored; `unclear` is what can't be of that which decides: nothing may be done for such a job. `is_leaving` says
    that it has been deleted, and stays only until somebody else has tidied up.
    """

    namespace: str
    name: str
    uid: str
    version: str
    generation: int
    is_leaving: bool
    job: Job | InvalidResource
    status: Status
    unclear: tuple[Problem, ...]
    written: Mapping[str, JSON] = field(repr=False)

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
    uid = str(metadata.get("uid"))
    same = known is not None and (known.uid, known.generation) == (uid, generation)
    return Resource(
        namespace=str(metadata.get("namespace")),
        name=str(metadata.get("name")),
        uid=uid,
        version=str(metadata.get("resourceVersion")),
        generation=generation,
        is_leaving=metadata.get("deletionTimestamp") is not None,
        job=known.job if known is not None and same else _job(source),
        status=status_of(source),
        unclear=status_problems(written),
        written=written,
    )


def _job(source: Object) -> Job | InvalidResource:
    try:
        return validate(Document(dict(source), "the resource"))
    except InvalidResource as invalid:
        return invalid


def _integer(value: JSON) -> int:
    return value if isinstance(value, int) else 0
