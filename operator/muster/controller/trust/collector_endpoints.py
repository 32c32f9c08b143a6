"""Sends agents to the leader: the collector's Service has no selector, the leader writes the EndpointSlices behind it.

With a selector the Service would send half of the agents to a standby, which can only refuse them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from muster.api.document import JSON
from muster.api.json_fields import mapping, string
from muster.clients.kubernetes.backoff import backoff_seconds
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import ENDPOINT_SLICES, SERVICES, Object

CHECK_SECONDS = 10.0
"""How often the leader looks whether the slices are still as it wrote them."""

LEADER_TERM = "muster.dev/leader-term"
"""The annotation with the term of the leader that wrote a slice: one of an earlier term leaves it alone."""

_log = logging.getLogger(__name__)


class NotLeading(Exception):
    """A slice was written by the leader of a later term."""


@dataclass(frozen=True)
class CollectorEndpoints:
    """Where this process's collector is: the Service's name and namespace, the pod's addresses, and the port."""

    namespace: str
    service: str
    addresses: tuple[str, ...]
    port: int


def slices(collector: CollectorEndpoints, service_uid: str, leader_term: int) -> tuple[Object, ...]:
    """The EndpointSlices that lead to `collector`, one a family of addresses, as they should be. Pure."""
    families: dict[str, list[str]] = {}
    for address in collector.addresses:
        families.setdefault(f"IPv{ip_address(address).version}", []).append(address)
    return tuple(_slice(collector, family, found, service_uid, leader_term) for family, found in families.items())


def leader_term_of(stored: Object) -> int:
    """The term of the leader that wrote the slice; -1 when none did. Pure."""
    text = string(mapping(mapping(stored.get("metadata")).get("annotations")).get(LEADER_TERM))
    return int(text) if text.isdecimal() and len(text) < len(str(2**63)) else -1


def is_as_wanted(stored: Object, wanted: Object) -> bool:
    """Whether a slice of the cluster says what it should. Pure."""
    return leader_term_of(stored) == leader_term_of(wanted) and all(
        _reduced(stored.get(name)) == wanted[name] for name in ("addressType", "endpoints", "ports")
    )


async def keep_endpoints(
    client: Client, collector: CollectorEndpoints, leader_term: int, chance: Callable[[], float]
) -> None:
    """Let the Service lead to `collector` from now on, as the leader of `leader_term`. Goes on until cancelled."""
    failures = 0
    while True:
        try:
            await _write_all(client, collector, leader_term)
            failures, seconds = 0, CHECK_SECONDS
        except NotLeading:
            seconds = CHECK_SECONDS
        except ApiError as error:
            if failures == 0:
                service = f"{collector.namespace}/{collector.service}"
                _log.warning("agents are not sent to this leader yet: Service %s and its slices: %s", service, error)
            seconds = backoff_seconds(failures, error, chance())
            failures += 1
        await asyncio.sleep(seconds)


async def _write_all(client: Client, collector: CollectorEndpoints, leader_term: int) -> None:
    service = await client.get(SERVICES, collector.namespace, collector.service)
    uid = string(mapping(service.get("metadata")).get("uid"))
    for wanted in slices(collector, uid, leader_term):
        await _write(client, collector.namespace, wanted, leader_term)


async def _write(client: Client, namespace: str, wanted: Object, leader_term: int) -> None:
    name = string(mapping(wanted.get("metadata")).get("name"))
    try:
        stored = await client.get(ENDPOINT_SLICES, namespace, name)
    except ApiError as error:
        if not error.is_not_found:
            raise
        await client.create(ENDPOINT_SLICES, namespace, wanted)
        return
    if leader_term_of(stored) > leader_term:
        raise NotLeading
    if is_as_wanted(stored, wanted):
        return
    version = mapping(stored.get("metadata")).get("resourceVersion")
    metadata = {**mapping(wanted.get("metadata")), "resourceVersion": version}
    await client.replace(ENDPOINT_SLICES, namespace, name, {**wanted, "metadata": metadata})


def _slice(
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
            "annotations": {LEADER_TERM: str(leader_term)},
            "ownerReferences": [owner],
        },
        "addressType": family,
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "collector", "port": collector.port, "protocol": "TCP"}],
    }


def _reduced(value: JSON) -> JSON:
    # the API server adds nothing here but empty fields
    if isinstance(value, Mapping):
        return {name: _reduced(one) for name, one in value.items() if one is not None}
    return [_reduced(one) for one in value] if isinstance(value, list) else value
