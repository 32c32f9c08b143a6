"""Find out why the API server refused a child object, with an ordered list of patterns. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from muster.api.spec.job import Job
from muster.core.failure.problems import QUOTA_EXCEEDED, SCHEDULING_GATED
from muster.core.problem import Problem
from muster.diagnose.kubernetes.quoting import quote
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Object
from muster.render.kubernetes.fields import find_job_field

POD_SECURITY = "PodSecurity"
ADMISSION_REFUSED = "AdmissionRefused"
INVALID_OBJECT = "InvalidObject"
NAME_TAKEN = "NameTaken"
NAMESPACE_TERMINATING = "NamespaceTerminating"
FORBIDDEN = "Forbidden"
SERVICE_ACCOUNT_MISSING = "ServiceAccountMissing"

_MAX_CHARS = 600
_MAX_FIELDS = 5

_MAX_READ_CHARS = 16 * 1024
_MAX_READ_CAUSES = 50
"""The limits for reading an error, because the API server quotes all invalid parts of a pod."""

_ERROR_PREFIX = re.compile(r'^[\w.]+ "[^"]*" is (?:forbidden|invalid): ')
_QUOTA = ("exceeded quota: ", ", requested: ", ", used: ", ", limited: ")
_QUOTA_NEEDS_FIELDS = re.compile(r"failed quota: ([^:]+): must specify (.+)$")
_WEBHOOK = re.compile(r'admission webhook "([^"]+)" denied the request(?:: |$)')
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request: ")
_WEBHOOK_DOWN = re.compile(r'failed calling webhook "([^"]+)": (.+)', re.DOTALL)
_ACCOUNT = re.compile(r'serviceaccount "([^"]+)" not found')
_FORBIDDEN = re.compile(r'User "[^"]*" cannot create resource "(\w+)"')
_UNKNOWN_FIELD = re.compile(r'(unknown|duplicate) field "([^"]+)"')


@dataclass(frozen=True)
class Refusal:
    """A refusal. `is_final` is set if only a change of the spec helps. Otherwise a change of the cluster may help."""

    problem: Problem
    is_final: bool = False


def read_refusal(error: ApiError, body: Object, job: Job) -> Refusal | None:
    """Return why the API server refused `body`, a child object of `job`.

    Return None for errors that a retry may fix: no response, a conflict, throttling or a server error.
    """
    causes, unread_count = error.causes[:_MAX_READ_CAUSES], len(error.causes[_MAX_READ_CAUSES:])
    error = ApiError(error.status, error.reason, error.message[:_MAX_READ_CHARS], causes=causes)
    for problem in (check(error, job) for check in _REFUSAL_CHECKS):
        if problem is not None:
            return Refusal(problem)
    if error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
        return Refusal(Problem(INVALID_OBJECT, _describe_invalid_fields(error, unread_count, body, job)), is_final=True)
    # An admission plug-in has refused the object, such as that for LimitRanges. A change of the cluster may help.
    if error.status == HTTPStatus.FORBIDDEN:
        return Refusal(Problem(ADMISSION_REFUSED, f"the cluster refuses it: {_get_error_text(error)}"))
    return None


def build_name_conflict(kind: str, name: str, namespace: str) -> Problem:
    """Return the problem that an object of another owner already has the child's name."""
    message = f"{kind} {name} in namespace {namespace} exists and belongs to another owner: delete it first"
    return Problem(NAME_TAKEN, message)


def build_deletion_wait(kind: str, name: str, namespace: str) -> Problem:
    """Return the problem that an object of another owner still has the child's name, and is being deleted."""
    message = f"{kind} {name} in namespace {namespace} belongs to another owner and is being deleted"
    return Problem(NAME_TAKEN, f"{message}: muster waits until it is gone")


def _check_quota(error: ApiError, _: Job) -> Problem | None:
    result = _split_at(error.message, _QUOTA)
    if result is not None and error.status == HTTPStatus.FORBIDDEN:
        name, requested, used, limited = (quote(part, 120) for part in result)
        message = f"quota {name} is exceeded: asked for {requested}, used {used}, limit {limited}"
        return Problem(QUOTA_EXCEEDED, message, f"quota {name} has no room for {_list_resource_names(requested)}")
    unspecified = _QUOTA_NEEDS_FIELDS.search(error.message)
    if unspecified is not None and error.status == HTTPStatus.FORBIDDEN:
        name, fields = (quote(group, 120) for group in unspecified.groups())
        return Problem(QUOTA_EXCEEDED, f"quota {name} requires every container to set {fields}: set spec.resources")
    return None


def _split_at(text: str, marks: Sequence[str]) -> list[str] | None:
    """Return the text after each of the marks, which must occur in this order; None if a mark is missing."""
    parts = [text]
    for mark in marks:
        before, separator, after = parts.pop().partition(mark)
        if not separator:
            return None
        parts += [before, after]
    return parts[1:]


def _list_resource_names(requested_resources: str) -> str:
    return ", ".join(part.partition("=")[0] for part in requested_resources.split(","))


def _check_pod_security(error: ApiError, _: Job) -> Problem | None:
    if error.status != HTTPStatus.FORBIDDEN or "violates PodSecurity" not in error.message:
        return None
    message = _get_error_text(error).removeprefix("violates ")
    return Problem(POD_SECURITY, f"set securityContext in spec.template; it violates {message}")


def _check_admission(error: ApiError, _: Job) -> Problem | None:
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
    # The HTTP status is a server error, but retries don't help until the webhook is repaired.
    failed_call = _WEBHOOK_DOWN.search(error.message)
    if failed_call is not None:
        why = quote(failed_call.group(2))
        return Problem(ADMISSION_REFUSED, f"admission webhook {failed_call.group(1)} doesn't answer: {why}")
    return None


def _check_terminating_namespace(error: ApiError, job: Job) -> Problem | None:
    has_terminating_cause = any(cause.message.endswith("is being terminated") for cause in error.causes)
    is_gone = error.is_not_found and error.message.startswith("namespaces ")
    if not is_gone and not has_terminating_cause and "because it is being terminated" not in error.message:
        return None
    return Problem(NAMESPACE_TERMINATING, f"namespace {job.metadata.namespace} is being deleted")


def _check_service_account(error: ApiError, job: Job) -> Problem | None:
    match = _ACCOUNT.search(error.message)
    if match is None or error.status != HTTPStatus.FORBIDDEN:
        return None
    message = f"ServiceAccount {match.group(1)} doesn't exist in namespace {job.metadata.namespace}: create it"
    return Problem(SERVICE_ACCOUNT_MISSING, message)


def _check_permission(error: ApiError, job: Job) -> Problem | None:
    match = _FORBIDDEN.search(error.message)
    if match is None or error.status != HTTPStatus.FORBIDDEN:
        return None
    message = f"muster may not create {match.group(1)} in namespace {job.metadata.namespace}"
    return Problem(FORBIDDEN, f"{message}: the cluster's administrator has to allow it")


_REFUSAL_CHECKS = (
    # Webhooks and policies choose their own HTTP status, which may be that of an invalid object.
    _check_admission,
    _check_terminating_namespace,
    _check_quota,
    _check_pod_security,
    _check_service_account,
    _check_permission,
)
"""The checks for refusals that may end without a change of the spec. The most specific check is first."""


def _describe_invalid_fields(error: ApiError, unread_count: int, body: Object, job: Job) -> str:
    """Return the invalid fields as paths in the job's spec.

    `unread_count` is the number of causes that were not read.
    """
    invalid_fields = [
        f"{find_job_field(cause.field, body, job)}: {cause.message}" for cause in error.causes if cause.field
    ]
    invalid_fields = invalid_fields or [
        f"{find_job_field(field, body, job)}: {kind} field" for kind, field in _UNKNOWN_FIELD.findall(error.message)
    ]
    if not invalid_fields:
        reason = _get_error_text(error).rpartition("cannot be handled as a Pod: ")[2]
        return f"the API server can't read the object: {quote(reason)}"
    # Fields of several containers may come from the same field of the job.
    invalid_fields = list(dict.fromkeys(invalid_fields))
    unread_count += len(invalid_fields) - _MAX_FIELDS
    shown = [quote(text) for text in invalid_fields[:_MAX_FIELDS]]
    return "; ".join([*shown, f"and {unread_count} more"] if unread_count > 0 else shown)


def _get_error_text(error: ApiError) -> str:
    return quote(_ERROR_PREFIX.sub("", error.message), _MAX_CHARS)
