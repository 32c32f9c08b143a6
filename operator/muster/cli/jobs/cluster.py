"""Connect a command to a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_api_error, explain_request_error
from muster.cli.jobs.job_reference import JobReference, check_names, check_namespace
from muster.clients.kubernetes.access import NoCluster
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError

Result = TypeVar("Result")


@dataclass(frozen=True)
class ClusterJob:
    """A job on a cluster."""

    client: Client
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def run_on_cluster(reference: JobReference, work: Callable[[ClusterJob], Awaitable[Result]]) -> Result:
    """Run `work` on the kubeconfig's cluster; return its result. Raises `BadInput` with the problem."""
    check_names(reference)

    async def run(client: Client, namespace: str) -> Result:
        try:
            return await work(ClusterJob(client, namespace, reference.name))
        except ApiError as error:
            raise BadInput(explain_api_error(error, namespace, reference.name)) from None

    return run_with_client(reference.namespace, run)


def run_with_client(
    namespace: str | None, work: Callable[[Client, str], Awaitable[Result]], context: str | None = None
) -> Result:
    """Run `work` with a client of the kubeconfig's cluster and the namespace (None: the context's).

    `context` None is the kubeconfig's current one. Raises `BadInput` with the problem.
    """
    check_namespace(namespace)
    return asyncio.run(_connect_and_run(namespace, work, context))


async def _connect_and_run(
    namespace: str | None, work: Callable[[Client, str], Awaitable[Result]], context: str | None
) -> Result:
    try:
        client = await Client.connect(context=context)
    except NoCluster as problem:
        raise BadInput(str(problem)) from None
    try:
        return await work(client, namespace or client.namespace)
    except ApiError as error:
        raise BadInput(explain_request_error(error)) from None
    finally:
        await client.close()
