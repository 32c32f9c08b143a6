"""What has to be there before the operator can work: an answering API server, its rights, the CRD."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

from muster.clients.kubernetes.backoff import backoff_seconds
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import EVENTS, JOBS, PODS, Kind

T = TypeVar("T")

CRD_SECONDS = 2.0
"""Between two looks whether the CRD has been installed."""

_NOTHING = "muster.dev/none"
"""A label that nothing has: listing by it asks for the right, and for no object."""

_log = logging.getLogger(__name__)


class CannotStart(Exception):
    """The operator can't work here as it is; the message says what is missing."""


async def with_retries(what: str, work: Callable[[], Awaitable[T]], chance: Callable[[], float]) -> T:
    """Do `work` until the API server answers. Raises `CannotStart` when it refuses, and `ApiError` as it comes else."""
    failures = 0
    while True:
        try:
            return await work()
        except ApiError as error:
            if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise CannotStart(f"{what}: the API server refuses: {error.message}") from error
            if error.is_not_found or error.is_refusal:
                raise
            seconds = backoff_seconds(failures, error, chance())
            _log.warning("%s: %s; tried again in %.1f s", what, error, seconds)
        failures += 1
        await asyncio.sleep(seconds)


async def check_cluster(client: Client, namespaces: tuple[str, ...], chance: Callable[[], float]) -> None:
    """Wait for the CRD, and ask for the rights to read. Raises `CannotStart`: which verb on what is missing."""
    for namespace in namespaces or (None,):
        await _wait_for_crd(client, namespace, chance)
        for kind in (PODS, EVENTS):
            await with_retries(f"listing {kind.plural}", _listing(client, kind, namespace), chance)


async def _wait_for_crd(client: Client, namespace: str | None, chance: Callable[[], float]) -> None:
    said = False
    while True:
        try:
            await with_retries(f"listing {JOBS.plural}", _listing(client, JOBS, namespace), chance)
        except ApiError as error:
            if not error.is_not_found:
                raise
        else:
            return
        if not said:
            said = True
            _log.warning(
                "the cluster doesn't know DistributedTrainingJobs: waiting until the CRD is installed "
                "(`muster crd | kubectl apply -f -`)"
            )
        await asyncio.sleep(CRD_SECONDS)


def _listing(client: Client, kind: Kind, namespace: str | None) -> Callable[[], Awaitable[object]]:
    return lambda: client.list(kind, namespace, labels=_NOTHING)
