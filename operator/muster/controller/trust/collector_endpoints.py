"""Route agents to the leader: the collector's Service has no selector, and the leader writes its EndpointSlices.

With a selector, the Service would route half of the agents to a standby, which refuses their reports.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import ENDPOINT_SLICES, SERVICES, Object

CHECK_SECONDS = 10.0
"""The interval at which the leader checks its slices."""

LEADER_TERM_ANNOTATION = "muster.dev/leader-term"
"""The annotation with the leader term in which a slice was written. An earlier leader must not overwrite the slice."""

_log = logging.getLogger(__name__)


class LaterLeaderExists(Exception):
    """A later leader has written a slice."""


@dataclass(frozen=True)
class CollectorEndpoints:
    """The addresses of this process' collector: the Service, the pod's addresses, and the port."""

    namespace: str
    service: str
    addresses: tuple[str, ...]
    port: int


def make_endpoint_slices(collector: CollectorEndpoints, service_uid: str, leader_term: int) -> tuple[Object, ...]:
    """Return the EndpointSlices that route to `collector`, one for each address family. Pure."""
    families: dict[str, list[str]] = {}
    for address in collector.addresses:
        families.setdefault(f"IPv{ip_address(address).version}", []).append(address)
    return tuple(
        _make_slice(collector, family, family_addresses, service_uid, leader_term)
        for family, family_addresses in families.items()
    )


def read_leader_term(current_slice: Object) -> int:
    """Return the leader term in the slice's annotation; -1 without one. Pure."""
    text = read_string(
        read_mapping(read_mapping(current_slice.get("metadata")).get("annotations")).get(LEADER_TERM_ANNOTATION)
    )
    return int(text) if text.isdecimal() and len(text) < len(str(2**63)) else -1


def is_current(current_slice: Object, new_slice: Object) -> bool:
    """Whether the slice in the cluster has the content of `new_slice`. Pure."""
    return read_leader_term(current_slice) == read_leader_term(new_slice) and all(
        _remove_nulls(current_slice.get(name)) == new_slice[name] for name in ("addressType", "endpoints", "ports")
    )


async def maintain_endpoints(
    client: Client, collector: CollectorEndpoints, leader_term: int, jitter: Callable[[], float]
) -> None:
    """Route the Service to `collector`, as the leader of `leader_term`, until cancelled."""
    failures = 0
    while True:
        try:
            await _write_all(client, collector, leader_term)
            failures, delay = 0, CHECK_SECONDS
        except LaterLeaderExists:
            delay = CHECK_SECONDS
        except ApiError as error:
            if failures == 0:
                service = f"{collector.namespace}/{collector.service}"
                _log.warning(
                    "agents can't reach this leader yet: Service %s and its EndpointSlices: %s", service, error
                )
            delay = compute_backoff_seconds(failures, error, jitter())
            failures += 1
        await asyncio.sleep(delay)


async def _write_all(client: Client, collector: CollectorEndpoints, leader_term: int) -> None:
    service = await client.get(SERVICES, collector.namespace, collector.service)
    uid = read_string(read_mapping(service.get("metadata")).get("uid"))
    for new_slice in make_endpoint_slices(collector, uid, leader_term):
        await _write(client, collector.namespace, new_slice, leader_term)


async def _write(client: Client, namespace: str, new_slice: Object, leader_term: int) -> None:
    name = read_string(read_mapping(new_slice.get("metadata")).get("name"))
    try:
        current_slice = await client.get(ENDPOINT_SLICES, namespace, name)
    except ApiError as error:
        if not error.is_not_found:
            raise
        await client.create(ENDPOINT_SLICES, namespace, new_slice)
        return
    if read_leader_term(current_slice) > leader_term:
        raise LaterLeaderExists
    if is_current(current_slice, new_slice):
        return
    version = read_mapping(current_slice.get("metadata")).get("resourceVersion")
    metadata = {**read_mapping(new_slice.get("metadata")), "resourceVersion": version}
    await client.replace(ENDPOINT_SLICES, namespace, name, {**new_slice, "metadata": metadata})


def _make_slice(
    collector: CollectorEndpoints, family: str, addresses: Sequence[str], service_uid: str, leader_term: int
) -> Object:
    owner: dict[str, JSON] = {"apiVersion": "v1", "kind": "Service", "name": collector.service, "uid": service_uid}
    labels: dict[str, JSON] = {
        "kubernetes.io/service-name": collector.service,
        "endpointslice.kubernetes.io/managed-by": "muster",
    }
    return {
        "apiVersion": ENDPOINT_SLICES.api_version,
        "kind": ENDPOINT_SLICES.name,
        "metadata": {
            "name": f"{collector.service}-{family.lower()}",
            "namespace": collector.namespace,
            "labels": labels,
            "annotations": {LEADER_TERM_ANNOTATION: str(leader_term)},
            "ownerReferences": [owner],
        },
        "addressType": family,
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "collector", "port": collector.port, "protocol": "TCP"}],
    }


def _remove_nulls(value: JSON) -> JSON:
    # the API server adds only empty fields
    if isinstance(value, Mapping):
        return {name: _remove_nulls(item) for name, item in value.items() if item is not None}
    return [_remove_nulls(item) for item in value] if isinstance(value, list) else value
