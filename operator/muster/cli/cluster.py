"""A command that asks a cluster: its connection, and what can go wrong with it as sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from muster.cli.problem import BadInput
from muster.kube.access import NoCluster
from muster.kube.client import Client
from muster.kube.errors import NO_ANSWER, ApiError


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
    return asyncio.run(_ask(wanted, work))


async def _ask(wanted: Wanted, work: Callable[[Target], Awaitable[int]]) -> int:
    try:
        client = await Client.connect()
    except NoCluster as problem:
        raise BadInput(str(problem)) from None
    try:
        target = Target(client, wanted.namespace or client.namespace, wanted.name)
        return await work(target)
    except ApiError as error:
        raise BadInput(_sentence(error, wanted.name)) from None
    finally:
        await client.close()


def _sentence(error: ApiError, name: str) -> str:
    if error.status == NO_ANSWER:
        return f"the cluster doesn't answer: {error.message}"
    # Whether the job or its kind is missing: the API server names an object's kind and name in the first case only.
    if error.is_not_found and name not in error.message:
        return "the cluster has no DistributedTrainingJobs: install muster there, or `muster crd | kubectl apply -f -`"
    if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"the cluster refuses: {error.message}"
    return error.message
