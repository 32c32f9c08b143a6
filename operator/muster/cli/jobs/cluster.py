"""A command that asks a cluster: its connection, and what can go wrong with it as sentences."""

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
    NAME_PATTERN,
    NAME_SENTENCE,
    NAMESPACE_PATTERN,
    PLURAL,
    SHORT_NAME,
)
from muster.cli.problem import BadInput
from muster.clients.kubernetes.access import NoCluster
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import NO_ANSWER, ApiError


@dataclass(frozen=True)
class Wanted:
    """The job that the user named; `namespace` None: that of the kubeconfig's context."""

    name: str
    namespace: str | None = None


@dataclass(frozen=True)
class Target:
    """A job on a cluster."""

    client: Client
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def ask_cluster(wanted: Wanted, work: Callable[[Target], Awaitable[int]]) -> int:
    """Do `work` on the cluster that kubectl would ask; its exit code. Raises `BadInput` with what went wrong."""
    check_names(wanted)
    return asyncio.run(_ask(wanted, work))


def check_names(wanted: Wanted) -> None:
    """Refuse what can't be a name; the API server would speak of a path that isn't there. Raises `BadInput`."""
    if len(wanted.name) > MAX_NAME_CHARS or not re.fullmatch(NAME_PATTERN, wanted.name):
        raise BadInput(f"{wanted.name!r} is not a job's name: {NAME_SENTENCE}")
    namespace = wanted.namespace
    if namespace is not None and (
        len(namespace) > MAX_NAMESPACE_CHARS or not re.fullmatch(NAMESPACE_PATTERN, namespace)
    ):
        raise BadInput(
            f"--namespace {namespace!r} is not a namespace's name: it has at most {MAX_NAMESPACE_CHARS} small letters, "
            "digits and dashes, and begins and ends with a letter or digit"
        )


async def _ask(wanted: Wanted, work: Callable[[Target], Awaitable[int]]) -> int:
    try:
        client = await Client.connect()
    except NoCluster as problem:
        raise BadInput(str(problem)) from None
    try:
        target = Target(client, wanted.namespace or client.namespace, wanted.name)
        return await work(target)
    except ApiError as error:
        raise BadInput(sentence(error, target.namespace, target.name)) from None
    finally:
        await client.close()


def sentence(error: ApiError, namespace: str, name: str) -> str:
    """What an answer to a question about the job `name` means for who asked it."""
    if error.status == NO_ANSWER:
        return f"the cluster doesn't answer: {error.message}"
    # Whether the job or its kind is missing: the API server names a missing object's kind and name only.
    if error.is_not_found and f'{PLURAL}.{GROUP} "{name}"' not in error.message:
        return (
            f"the cluster has no {KIND}s: muster isn't installed there, or the kubeconfig's context is another "
            "cluster's (`kubectl config current-context`)"
        )
    if error.is_not_found:
        return (
            f"there is no {KIND} {name} in the namespace {namespace}; "
            f"`kubectl get {SHORT_NAME} --all-namespaces` lists all that there are"
        )
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"the cluster doesn't know who asks: {error.message}; `kubectl auth whoami` asks the same way"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"the cluster refuses: {error.message}"
    return error.message
