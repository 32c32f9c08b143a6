"""Read the jobs of a namespace, or of all, without the client that imports the event loop, if possible."""
# ruff: noqa: PLC0415 - the imports of the client would take most of the command's time

from __future__ import annotations

import os

from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_list_error
from muster.cli.jobs.job_reference import check_namespace
from muster.clients.kubernetes.direct_access import find_direct_access
from muster.clients.kubernetes.direct_requests import list_objects
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS, Object


def fetch_jobs(namespace: str | None, *, all_namespaces: bool) -> tuple[list[Object], str | None]:
    """Return the jobs, and their namespace (None: all). `namespace` None is the kubeconfig's. Raises `BadInput`."""
    check_namespace(namespace)
    access = find_direct_access(os.environ)
    if access is None:
        from muster.cli.jobs.cluster import run_with_client
        from muster.clients.kubernetes.client import Client

        async def work(client: Client, own_namespace: str) -> tuple[list[Object], str | None]:
            place = None if all_namespaces else own_namespace
            try:
                return list((await client.list(JOBS, place)).items), place
            except ApiError as error:
                raise BadInput(explain_list_error(error)) from None

        return run_with_client(namespace, work)
    place = None if all_namespaces else namespace or access.namespace
    try:
        return list(list_objects(access, JOBS, place)), place
    except ApiError as error:
        raise BadInput(explain_list_error(error)) from None
