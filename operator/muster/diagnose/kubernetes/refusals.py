"""What the API server's no to a child of a job means for the job: an ordered list of what it may say. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.core.failure.problems import QUOTA_EXCEEDED, SCHEDULING_GATED
from muster.diagnose.kubernetes.quoting import quote
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Object
from muster.render.kubernetes.fields import in_job

POD_SECURITY = "PodSecurity"
ADMISSION_REFUSED = "AdmissionRefused"
INVALID_POD = "InvalidPod"
NAME_TAKEN = "NameTaken"
NAMESPACE_TERMINATING = "NamespaceTerminating"
FORBIDDEN = "Forbidden"
SERVICE_ACCOUNT_MISSING = "ServiceAccountMissing"

_MAX_CHARS = 600
_MAX_FIELDS = 5

_MAX_READ_CHARS = 16 * 1024
_MAX_READ_CAUSES = 50
"""Of what the API server says: it quotes what is wrong in a pod, all of it, and a template may be long."""

_SUBJECT = re.compile(r'^[\w.]+ "[^"]*" is (?:forbidden|invalid): ')
_QUOTA = ("exceeded quota: ", ", requested: ", ", used: ", ", limited: ")
_UNSPECIFIED = re.compile(r"failed quota: ([^:]+): must specify (.+)$")
_WEBHOOK = re.compile(r'admission webhook "([^"]+)" denied the request(?:: |$)')
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request: ")
_WEBHOOK_DOWN = re.compile(r'failed calling webhook "([^"]+)": (.+)', re.DOTALL)
_ACCOUNT = re.compile(r'serviceaccount "([^"]+)" not found')
_NO_RIGHT = re.compile(r'User "[^"]*" cannot create resource "(\w+)"')
_UNKNOWN_FIELD = re.compile(r'(unknown|duplicate) field "([^"]+)"')


@dataclass(frozen=True)
class Refusal:
    """`is_final`: only another spec can change it; any other may pass when the cluster changes."""

    problem: Problem
    is_final: bool = False


def read_refusal(error: ApiError, body: Object, job: Job) -> Refusal | None:
    """What refusing the child `body` of `job` means; None for an error that has nothing to do with what was asked for.

    Those (no answer, a conflict, too many requests, a broken server) are tried again by the caller.
    """
    causes, left = error.causes[:_MAX_READ_CAUSES], len(error.causes[_MAX_READ_CAUSES:])
    error = ApiError(error.status, error.reason, error.message[:_MAX_READ_CHARS], causes=causes)
    for problem in (look(error, job) for look in _PASSING):
        if problem is not None:
            return Refusal(problem)
    if error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
        return Refusal(Problem(INVALID_POD, _invalid(error, left, body, job)), is_final=True)
    # LimitRanges, priority and runtime classes, other admission plug-ins: what they want is not in the spec alone.
    if error.status == HTTPStatus.FORBIDDEN:
        return Refusal(Problem(ADMISSION_REFUSED, f"the cluster refuses it: {_words(error)}"))
    return None


def name_taken(kind: str, name: str, namespace: str) -> Problem:
    """A child's name belongs to an object that isn't the job's; it is left alone."""
    words = f"{kind} {name} in namespace {namespace} is there and isn't this job's: it has to go first"
    return Problem(NAME_TAKEN, words)


def _quota(error: ApiError, _: Job) -> Problem | None:
    result = _between(error.message, _QUOTA)
    if result is not None and error.status == HTTPStatus.FORBIDDEN:
        name, requested, used, limited = (quote(part, 120) for part in result)
        words = f"quota {name} is exceeded: asked for {requested}, used {used}, limit {limited}"
        return Problem(QUOTA_EXCEEDED, words, f"quota {name} has no room for {_short_of(requested)}")
    unspecified = _UNSPECIFIED.search(error.message)
    if unspecified is not None and error.status == HTTPStatus.FORBIDDEN:
        name, what = (quote(group, 120) for group in unspecified.groups())
        return Problem(QUOTA_EXCEEDED, f"quota {name} wants every container to say {what}: set spec.resources")
    return None


def _between(text: str, marks: Sequence[str]) -> list[str] | None:
    """What stands after each of the marks, which follow each other; None where one is missing."""
    parts = [text]
    for mark in marks:
        before, found, after = parts.pop().partition(mark)
        if not found:
            return None
        parts += [before, after]
    return parts[1:]


def _short_of(requested: str) -> str:
    return ", ".join(part.partition("=")[0] for part in requested.split(","))


def _pod_security(error: ApiError, _: Job) -> Problem | None:
    if error.status != HTTPStatus.FORBIDDEN or "violates PodSecurity" not in error.message:
        return None
    words = _words(error).removeprefix("violates ")
    return Problem(POD_SECURITY, f"set securityContext in spec.template; it violates {words}")


def _admission(error: ApiError, _: Job) -> Problem | None:
    webhook = _WEBHOOK.search(error.message)
    if webhook is not None and "podgroup phase is Pending" in error.message:
        return Problem(SCHEDULING_GATED, "Volcano has not admitted the job yet: its PodGroup is Pending")
    if webhook is not None:
        why = quote(error.message[webhook.end() :]) or "it gives no reason"
        return Problem(ADMISSION_REFUSED, f"admission webhook {webhook.group(1)} refuses it: {why}")
    policy = _POLICY.search(error.message)
    if policy is not None:
        why = quote(error.message[policy.end() :])
        return Problem(ADMISSION_REFUSED, f"admission policy {policy.group(1)} refuses it: {why}")
    # A server error for HTTP, but it stays until the webhook is repaired.
    down = _WEBHOOK_DOWN.search(error.message)
    if down is not None:
        why = quote(down.group(2))
        return Problem(ADMISSION_REFUSED, f"admission webhook {down.group(1)} doesn't answer: {why}")
    return None


def _terminating(error: ApiError, job: Job) -> Problem | None:
    causes = any(cause.message.endswith("is being terminated") for cause in error.causes)
    is_gone = error.is_not_found and error.message.startswith("namespaces ")
    if not is_gone and not causes and "because it is being terminated" not in error.message:
        return None
    return Problem(NAMESPACE_TERMINATING, f"namespace {job.metadata.namespace} is being deleted")


def _service_account(error: ApiError, job: Job) -> Problem | None:
    match = _ACCOUNT.search(error.message)
    if match is None or error.status != HTTPStatus.FORBIDDEN:
        return None
    words = f"ServiceAccount {match.group(1)} doesn't exist in namespace {job.metadata.namespace}: create it"
    return Problem(SERVICE_ACCOUNT_MISSING, words)


def _no_right(error: ApiError, job: Job) -> Problem | None:
    match = _NO_RIGHT.search(error.message)
    if match is None or error.status != HTTPStatus.FORBIDDEN:
        return None
    words = f"muster may not create {match.group(1)} in namespace {job.metadata.namespace}"
    return Problem(FORBIDDEN, f"{words}: the cluster's administrator has to allow it")


_PASSING = (
    # Webhooks and policies choose their own HTTP status, also that of an invalid object.
    _admission,
    _terminating,
    _quota,
    _pod_security,
    _service_account,
    _no_right,
)
"""What may pass, most telling first."""


def _invalid(error: ApiError, left: int, body: Object, job: Job) -> str:
    """The fields that are wrong, as the job's owner wrote them; `left` more causes were not read."""
    wrong = [f"{in_job(cause.field, body, job)}: {cause.message}" for cause in error.causes if cause.field]
    wrong = wrong or [
        f"{in_job(field, body, job)}: {kind} field" for kind, field in _UNKNOWN_FIELD.findall(error.message)
    ]
    if not wrong:
        return (
            f"the API server can't read the pod: {quote(_words(error).rpartition('cannot be handled as a Pod: ')[2])}"
        )
    wrong = list(dict.fromkeys(wrong))  # two containers may have the same of the job's field
    left += len(wrong) - _MAX_FIELDS
    shown = [quote(text) for text in wrong[:_MAX_FIELDS]]
    return "; ".join([*shown, f"and {left} more"] if left > 0 else shown)


def _words(error: ApiError) -> str:
    return quote(_SUBJECT.sub("", error.message), _MAX_CHARS)
