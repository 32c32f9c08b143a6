"""Check that the operator can start: it needs the API server, permissions, and the CRD."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import EVENTS, JOBS, NODES, PODS, Kind

T = TypeVar("T")

CRD_CHECK_SECONDS = 2.0
"""The interval of checks for the CRD."""

_UNUSED_LABEL = "muster.dev/none"
"""A label that no object has. A list with this label checks the permission, and returns no objects."""

_log = logging.getLogger(__name__)


class StartupError(Exception):
    """The operator can't start; the message says why."""


async def run_with_retries(action: str, work: Callable[[], Awaitable[T]], jitter: Callable[[], float]) -> T:
    """Retry `work` until the API server responds.

    Raises `StartupError` if the API server denies it, and `ApiError` for other errors that a retry can't fix.
    """
    failures = 0
    while True:
        try:
            return await work()
        except ApiError as error:
            if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise StartupError(f"{action}: the API server denies it: {error.message}") from error
            if error.is_not_found or error.is_refusal:
                raise
            seconds = compute_backoff_seconds(failures, error, jitter())
            _log.warning("%s: %s; retry in %.1f s", action, error, seconds)
        failures += 1
        await asyncio.sleep(seconds)


async def check_cluster(
    client: Client, namespaces: tuple[str, ...], jitter: Callable[[], float], *, reads_nodes: bool = False
) -> None:
    """Wait for the CRD, and check the read permissions. Raises `StartupError` if one is missing.

    `reads_nodes` is set if the operator needs the permission to read Kubernetes nodes.
    """
    if reads_nodes:
        await run_with_retries(f"listing {NODES.plural}", _list_request(client, NODES, None), jitter)
    for namespace in namespaces or (None,):
        await _wait_for_crd(client, namespace, jitter)
        for kind in (PODS, EVENTS):
            await run_with_retries(f"listing {kind.plural}", _list_request(client, kind, namespace), jitter)


async def _wait_for_crd(client: Client, namespace: str | None, jitter: Callable[[], float]) -> None:
    is_logged = False
    while True:
        try:
            await run_with_retries(f"listing {JOBS.plural}", _list_request(client, JOBS, namespace), jitter)
        except ApiError as error:
            if not error.is_not_found:
                raise
        else:
            return
        if not is_logged:
            is_logged = True
            _log.warning(
                "the cluster has no DistributedTrainingJobs: waiting until the CRD is installed "
                "(`muster crd | kubectl apply --server-side -f -`)"
            )
        await asyncio.sleep(CRD_CHECK_SECONDS)


def _list_request(client: Client, kind: Kind, namespace: str | None) -> Callable[[], Awaitable[object]]:
    return lambda: client.list(kind, namespace, labels=_UNUSED_LABEL)
