"""Decode the API server's AdmissionReviews in bounded time, and encode the responses. Pure.

The input may be any object that users can store in the API server, or any bytes that a pod sends directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.api.names import GROUP, KIND, MAX_TEMPLATE_CHARS, TEMPLATE_ANNOTATION
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.admission import JobChange, validate_change
from muster.core.status.truncate import truncate_message
from muster.objects.kubernetes.job_source import MAX_SPEC_TEXT_BYTES, MAX_STATUS_TEXT_BYTES
from muster.objects.kubernetes.json_parts import MalformedJson, Part, find_value
from muster.objects.kubernetes.kinds import Object, ParseOptions
from muster.objects.kubernetes.object_parser import MISSING_PARTS, read_missing_parts, read_object

MAX_REVIEW_BYTES = 2 * 1024 * 1024
"""Enough for two specs and two statuses of the maximum length, and for metadata, which muster ignores."""

MAX_PROBLEMS = 20
"""The maximum number of problems in a response. The user sees the others after fixing these."""

REVIEW_TYPE: Mapping[str, JSON] = MappingProxyType({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})

_MAX_FIELD_BYTES = 1024

_ORIGIN_NAMES = ("uid", "namespace")

_FIELD_NAMES = ("uid", "operation", "namespace", "name", "dryRun", "resource", "subResource")

_JOB_PARSE_OPTIONS = ParseOptions(
    metadata=frozenset({"name", "namespace"}),
    parts=frozenset({"apiVersion", "kind", "spec", "status"}),
    max_bytes={"spec": MAX_SPEC_TEXT_BYTES, "status": MAX_STATUS_TEXT_BYTES},
    annotations={TEMPLATE_ANNOTATION: MAX_TEMPLATE_CHARS},
)
"""The parts of a job that the webhook decodes. The API server has validated all other metadata."""


@dataclass(frozen=True)
class Review:
    """An admission request. `fields` are for kopf, without the user's identity."""

    uid: str
    namespace: str
    name: str
    fields: dict[str, JSON]


@dataclass(frozen=True)
class ReviewOrigin:
    """The identifier of an admission request, and the namespace of its job."""

    uid: str
    namespace: str


def read_origin(text: bytes) -> ReviewOrigin:
    """Decode only who asks, which an API server writes before the objects. Raises `MalformedJson`.

    So a namespace beyond its limit costs little, whatever the size of its jobs.
    """
    found: dict[str, JSON] = {}
    for name, part in _find_request(find_value(text)).iterate_members():
        if name in _ORIGIN_NAMES and part.size <= _MAX_FIELD_BYTES:
            found[name] = part.parse()
        if len(found) == len(_ORIGIN_NAMES):
            break
    uid, namespace = (found.get(name) for name in _ORIGIN_NAMES)
    if not isinstance(uid, str) or not isinstance(namespace, str):
        raise MalformedJson("a review needs a uid and a namespace")
    return ReviewOrigin(uid, namespace)


def read_review(text: bytes) -> Review:
    """Decode the request of an AdmissionReview. Raises `MalformedJson`."""
    fields: dict[str, JSON] = {}
    for name, part in _find_request(find_value(text)).iterate_members():
        if name in _FIELD_NAMES and part.size <= _MAX_FIELD_BYTES:
            fields[name] = part.parse()
        elif name in ("object", "oldObject"):
            fields[name] = _read_nullable_object(part)
    uid, namespace, job = (fields.get(key) for key in ("uid", "namespace", "name"))
    if not isinstance(uid, str) or not isinstance(namespace, str) or not isinstance(fields.get("resource"), dict):
        raise MalformedJson("a review needs a uid, a namespace and a resource")
    return Review(uid, namespace, job if isinstance(job, str) else "", {**fields, "userInfo": {}})


def _find_request(review: Part) -> Part:
    for name, part in review.iterate_members():
        if name == "request":
            return part
    raise MalformedJson("a review needs a request")


def _read_nullable_object(part: Part) -> JSON:
    return None if part.size == len("null") else dict(read_object(part, _JOB_PARSE_OPTIONS))


def find_problems(
    new_object: Object, old_object: Object | None, accept: Callable[[Job, Status], None]
) -> tuple[FieldProblem, ...]:
    """Return the problems of a resource. `accept` is as in `muster.core.admission`."""
    if old_object is not None and read_missing_parts(old_object):
        # The stored job is invalid, as its status shows, so a change can't be compared with it.
        return ()
    skipped = read_missing_parts(new_object)
    if skipped:
        return tuple(FieldProblem(path, problem) for path, problem in skipped.items() if path != "status")
    return validate_change(
        JobChange({name: part for name, part in new_object.items() if name != MISSING_PARTS}, old_object), accept
    )


def make_unreviewed_response(origin: ReviewOrigin, warning: str) -> dict[str, JSON]:
    """Return a response that allows the job without a review."""
    return {
        **REVIEW_TYPE,
        "response": {"uid": origin.uid, "allowed": True, "warnings": [warning]},
    }


def make_busy_response(origin: ReviewOrigin) -> dict[str, JSON]:
    """Return a response that refuses a job whose template can't be merged now."""
    status: JSON = {
        "code": HTTPStatus.TOO_MANY_REQUESTS,
        "reason": "TooManyRequests",
        "message": (
            f"muster merges no template now: the namespace {origin.namespace} has created or changed many jobs; try "
            "again in a minute"
        ),
    }
    return {**REVIEW_TYPE, "response": {"uid": origin.uid, "allowed": False, "status": status}}


def make_denial_message(problems: Sequence[FieldProblem]) -> str:
    """Return the message of a denial."""
    more = len(problems) - MAX_PROBLEMS
    sentences = [truncate_message(str(problem)) for problem in problems[:MAX_PROBLEMS]]
    return "; ".join([*sentences, f"and {more} more"] if more > 0 else sentences)


def make_denial_status(review: Review, problems: Sequence[FieldProblem]) -> Object:
    """Return the Status object of a denial, in the API server's format, which kubectl displays."""
    causes: list[JSON] = [
        {"reason": "FieldValueInvalid", "field": problem.path, "message": truncate_message(problem.message)}
        for problem in problems[:MAX_PROBLEMS]
    ]
    return {
        "code": 422,
        "reason": "Invalid",
        "message": make_denial_message(problems),
        "details": {"group": GROUP, "kind": KIND, "name": review.name, "causes": causes},
    }
