"""Explain the API server's errors to the user."""

from __future__ import annotations

from http import HTTPStatus

from muster.api.names import GROUP, KIND, PLURAL, SHORT_NAME
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError

_NO_KIND = (
    f"the cluster has no {KIND}s: muster isn't installed there, or the kubeconfig's context names another "
    "cluster (`kubectl config current-context`)"
)


def explain_list_error(error: ApiError) -> str:
    """Explain the API server's error about a list of jobs to the user."""
    return _NO_KIND if error.is_not_found else explain_request_error(error)


def explain_api_error(error: ApiError, namespace: str, name: str) -> str:
    """Explain the API server's error about the job `name` to the user."""
    # The API server's message names only a missing object: without it, the CRD is missing.
    if error.is_not_found and f'{PLURAL}.{GROUP} "{name}"' not in error.message:
        return _NO_KIND
    if error.is_not_found:
        return (
            f"there is no {KIND} {name} in the namespace {namespace}; "
            f"`kubectl get {SHORT_NAME} --all-namespaces` lists all jobs"
        )
    return explain_request_error(error)


def explain_request_error(error: ApiError) -> str:
    """Explain the API server's error about any request to the user."""
    if error.status == NO_RESPONSE:
        return f"the cluster doesn't answer: {error.message}"
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"the cluster doesn't accept your credentials: {error.message}; `kubectl auth whoami` uses the same ones"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"the cluster denies the request: {error.message}"
    return error.message
