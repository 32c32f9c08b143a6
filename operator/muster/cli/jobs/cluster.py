"""Connect a command to a cluster, and translate the cluster's errors to messages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from muster.api.names import (
    GROUP,
    KIND,
    MAX_NAME_CHARS,
    MAX_NAMESPACE_CHARS,
    NAME_MESSAGE,
    NAME_PATTERN,
    NAMESPACE_PATTERN,
    PLURAL,
    SHORT_NAME,
)
from muster.cli.errors import BadInput
from muster.clients.kubernetes.access import NoCluster
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError


@dataclass(frozen=True)
class JobReference:
    """The name and namespace of a job. `namespace` None means that of the kubeconfig's context."""

    name: str
    namespace: str | None = None


@dataclass(frozen=True)
class ClusterJob:
    """A job on a cluster."""

    client: Client
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def run_on_cluster(reference: JobReference, work: Callable[[ClusterJob], Awaitable[int]]) -> int:
    """Run `work` on the kubeconfig's cluster; return the exit code. Raises `BadInput` with the problem."""
    check_names(reference)
    return asyncio.run(_connect_and_run(reference, work))


def check_names(reference: JobReference) -> None:
    """Raise `BadInput` for invalid names, for which the API server would only report an unknown path."""
    if len(reference.name) > MAX_NAME_CHARS or not re.fullmatch(NAME_PATTERN, reference.name):
        raise BadInput(f"{reference.name!r} is not a job's name: {NAME_MESSAGE}")
    namespace = reference.namespace
    if namespace is not None and (
        len(namespace) > MAX_NAMESPACE_CHARS or not re.fullmatch(NAMESPACE_PATTERN, namespace)
    ):
        raise BadInput(
            f"--namespace {namespace!r} is not a namespace's name: it has at most {MAX_NAMESPACE_CHARS} small letters, "
            "digits and dashes, and begins and ends with a letter or digit"
        )


async def _connect_and_run(reference: JobReference, work: Callable[[ClusterJob], Awaitable[int]]) -> int:
    try:
        client = await Client.connect()
    except NoCluster as problem:
        raise BadInput(str(problem)) from None
    try:
        target = ClusterJob(client, reference.namespace or client.namespace, reference.name)
        return await work(target)
    except ApiError as error:
        raise BadInput(explain_api_error(error, target.namespace, target.name)) from None
    finally:
        await client.close()


def explain_api_error(error: ApiError, namespace: str, name: str) -> str:
    """Explain the API server's error about the job `name` to the user."""
    if error.status == NO_RESPONSE:
        return f"the cluster doesn't answer: {error.message}"
    # The API server's message names only a missing object: without it, the CRD is missing.
    if error.is_not_found and f'{PLURAL}.{GROUP} "{name}"' not in error.message:
        return (
            f"the cluster has no {KIND}s: muster isn't installed there, or the kubeconfig's context names another "
            "cluster (`kubectl config current-context`)"
        )
    if error.is_not_found:
        return (
            f"there is no {KIND} {name} in the namespace {namespace}; "
            f"`kubectl get {SHORT_NAME} --all-namespaces` lists all jobs"
        )
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"the cluster doesn't accept your credentials: {error.message}; `kubectl auth whoami` uses the same ones"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"the cluster denies the request: {error.message}"
    return error.message
