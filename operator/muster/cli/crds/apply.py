"""Create or update the CustomResourceDefinitions on a cluster (docs/decisions/0057)."""

from __future__ import annotations

import asyncio

from muster.api.crd import build_crds
from muster.api.json_fields import read_mapping, read_mappings, read_string
from muster.api.schema import Schema
from muster.cli.crds.version import VERSION_ANNOTATION, is_newer, read_crd_version
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import run_with_client
from muster.clients.kubernetes.client import Client
from muster.distribution import get_version
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CRDS, Object

_ATTEMPTS = 150
_POLL_SECONDS = 0.2
"""The API server serves the resources of a new definition within a second, so wait 30 s at most."""


def apply_all() -> list[str]:
    """Apply all definitions to kubectl's cluster; return a line for each. Raises `BadInput` with the problem."""

    async def work(client: Client, _: str) -> list[str]:
        return [await apply_crd(client, crd, get_version()) for crd in build_crds()]

    return run_with_client(None, work)


async def apply_crd(client: Client, crd: Schema, version: str) -> str:
    """Apply a definition of this version of muster unless the cluster has a newer one, and wait until it is served.

    Returns what was done. Raises `ApiError`, and `BadInput` if the API server does not serve the resource.
    """
    name = read_string(read_mapping(crd["metadata"]).get("name"))
    present = await _find(client, name)
    present_version = "" if present is None else read_crd_version(present)
    if is_newer(present_version, version):
        return f"{name}: kept, because it is of muster {present_version}, which is newer than {version}"
    metadata: Schema = {"name": name, "annotations": {VERSION_ANNOTATION: version}}
    await client.apply(CRDS, None, name, {**crd, "metadata": metadata})
    await _wait_until_served(client, name)
    return f"{name}: {'created' if present is None else 'updated'}, of muster {version}"


async def _find(client: Client, name: str) -> Object | None:
    try:
        return await client.get(CRDS, None, name)
    except ApiError as error:
        if error.is_not_found:
            return None
        raise


async def _wait_until_served(client: Client, name: str) -> None:
    for _ in range(_ATTEMPTS):
        if _is_served(await client.get(CRDS, None, name)):
            return
        await asyncio.sleep(_POLL_SECONDS)
    raise BadInput(
        f"the API server does not serve {name} after {_ATTEMPTS * _POLL_SECONDS:.0f} s: "
        f"`kubectl describe crd {name}` says why in its conditions"
    )


def _is_served(crd: Object) -> bool:
    conditions = read_mappings(read_mapping(crd.get("status")).get("conditions"))
    return any((condition.get("type"), condition.get("status")) == ("Established", "True") for condition in conditions)
