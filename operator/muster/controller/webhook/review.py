"""An AdmissionReview of the API server's, read in bounded time, and the answer to it. Pure.

Whatever a tenant can have the API server store, and whatever any pod of the cluster sends itself, is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.api.names import GROUP, KIND
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.admission import JobChange, objections
from muster.core.status.sentences import fit
from muster.objects.kubernetes.job_source import MAX_SPEC_TEXT_BYTES, MAX_STATUS_TEXT_BYTES
from muster.objects.kubernetes.json_parts import Malformed, Part, value_in
from muster.objects.kubernetes.kinds import Object, Reading
from muster.objects.kubernetes.reading import LEFT_OUT, left_out, read_object

MAX_REVIEW_BYTES = 2 * 1024 * 1024
"""Two specs and two statuses as long as muster reads them, and room for what it doesn't read of their metadata."""

MAX_PROBLEMS = 20
"""The problems that one answer names. Once a user has corrected them, the next answer names the others."""

KIND_OF_REVIEW: Mapping[str, JSON] = MappingProxyType({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})

_MAX_WORD_BYTES = 1024

_WORDS = ("uid", "operation", "namespace", "name", "dryRun", "resource", "subResource")

_REVIEWED_JOBS = Reading(
    metadata=frozenset({"name", "namespace"}),
    parts=frozenset({"apiVersion", "kind", "spec", "status"}),
    max_bytes={"spec": MAX_SPEC_TEXT_BYTES, "status": MAX_STATUS_TEXT_BYTES},
)
"""Without labels, uids and the like, which the API server has checked."""


@dataclass(frozen=True)
class Review:
    """What is asked; `fields` are the request's as kopf takes them, without who asks."""

    uid: str
    namespace: str
    name: str
    fields: dict[str, JSON]


def read_review(text: bytes) -> Review:
    """The request of an AdmissionReview. Raises `Malformed`."""
    fields: dict[str, JSON] = {}
    for name, part in _request(value_in(text)).members():
        if name in _WORDS and part.size <= _MAX_WORD_BYTES:
            fields[name] = part.value()
        elif name in ("object", "oldObject"):
            fields[name] = _object(part)
    uid, namespace, job = (fields.get(word) for word in ("uid", "namespace", "name"))
    if not isinstance(uid, str) or not isinstance(namespace, str) or not isinstance(fields.get("resource"), dict):
        raise Malformed("a review names its uid, a namespace and a resource")
    return Review(uid, namespace, job if isinstance(job, str) else "", {**fields, "userInfo": {}})


def _request(review: Part) -> Part:
    for name, part in review.members():
        if name == "request":
            return part
    raise Malformed("a review has a request")


def _object(part: Part) -> JSON:
    return None if part.size == len("null") else dict(read_object(part, _REVIEWED_JOBS))


def objections_to(
    wanted: Object, stored: Object | None, accept: Callable[[Job, Status], None]
) -> tuple[FieldProblem, ...]:
    """What speaks against a resource as it was read. `accept` is as in `muster.core.admission`."""
    if stored is not None and left_out(stored):
        # The stored job is already invalid, so there is nothing valid to compare with; its status says what is wrong.
        return ()
    missing = left_out(wanted)
    if missing:
        return tuple(FieldProblem(path, why) for path, why in missing.items() if path != "status")
    return objections(JobChange({name: part for name, part in wanted.items() if name != LEFT_OUT}, stored), accept)


def allowed(review: Review, warning: str) -> dict[str, JSON]:
    """The answer of who didn't look."""
    return {
        **KIND_OF_REVIEW,
        "response": {"uid": review.uid, "allowed": True, "warnings": [warning]},
    }


def denial(problems: Sequence[FieldProblem]) -> str:
    """Why, in one text."""
    more = len(problems) - MAX_PROBLEMS
    sentences = [fit(str(problem)) for problem in problems[:MAX_PROBLEMS]]
    return "; ".join([*sentences, f"and {more} more"] if more > 0 else sentences)


def refused_status(review: Review, problems: Sequence[FieldProblem]) -> Object:
    """The status of a refusal as the API server's own ones have it: programs find each field, kubectl lists them."""
    causes: list[JSON] = [
        {"reason": "FieldValueInvalid", "field": problem.path, "message": fit(problem.message)}
        for problem in problems[:MAX_PROBLEMS]
    ]
    return {
        "code": 422,
        "reason": "Invalid",
        "message": denial(problems),
        "details": {"group": GROUP, "kind": KIND, "name": review.name, "causes": causes},
    }
