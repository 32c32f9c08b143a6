"""Send requests to AWS, for all regions and roles, with rate limits for each account."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from muster.api.config.sagemaker import AwsEndpoints
from muster.api.role_arn import parse_account_id
from muster.clients.aws.connection import Connection, Response, Service, always_true
from muster.clients.aws.quotas import QUOTAS
from muster.clients.aws.rate_limiter import RateLimiter
from muster.clients.aws.threads import ThreadPool
from muster.clients.aws.training_job_poller import TrainingJobPoller
from muster.clients.aws.training_jobs import TrainingJobs
from muster.clients.request_counter import RequestCounter
from muster.objects.aws import decode
from muster.objects.aws.errors import Unavailable
from muster.objects.aws.place import Place


@dataclass(frozen=True)
class CallerIdentity:
    """muster's identity in AWS."""

    account: str
    arn: str


class Aws:
    """The client of AWS. All places in an account share its rate limits. Only one event loop may use this.

    `jitter` returns a random number from 0 to 1, for delays. Requests that change AWS are sent only while
    `may_change()` returns True; threads call it. `requests` counts requests by service, operation and code.
    """

    def __init__(
        self,
        endpoints: AwsEndpoints | None = None,
        jitter: Callable[[], float] = random.random,
        may_change: Callable[[], bool] = always_true,
    ) -> None:
        self.requests = RequestCounter()
        self._endpoints = endpoints or AwsEndpoints()
        self._jitter = jitter
        self._may_change = may_change
        self._threads = ThreadPool()
        self._connections: dict[Place, Connection] = {}
        self._rate_limiters: dict[tuple[str, str, str], RateLimiter] = {}
        self._identities: dict[Place, CallerIdentity] = {}
        self._identity_locks: dict[Place, asyncio.Lock] = {}
        self._pollers: dict[Place, TrainingJobPoller] = {}
        self._tasks: dict[Place, asyncio.Task[None]] = {}

    async def send_request(
        self, place: Place, service: Service, operation: str, request: Mapping[str, object]
    ) -> Response:
        """Send a request, within its rate limit. Raises AwsError. `operation` has the API's name: `GetLogEvents`."""
        quota = QUOTAS.get(operation)
        if quota is None:
            return await self.get_connection(place).send_request(service, operation, request)
        key = (await self._find_account(place), place.region, operation)
        if key not in self._rate_limiters:
            self._rate_limiters[key] = RateLimiter(quota)
        async with self._rate_limiters[key].slot():
            return await self.get_connection(place).send_request(service, operation, request)

    async def get_identity(self, place: Place) -> CallerIdentity:
        """Return the account and the ARN. Raises AwsError."""
        # A lock, because all jobs call this when an operator becomes the leader.
        async with self._identity_locks.setdefault(place, asyncio.Lock()):
            if place not in self._identities:
                response = await self.get_connection(place).send_request("sts", "GetCallerIdentity", {})
                self._identities[place] = CallerIdentity(
                    decode.read_text(response, "Account"), decode.read_text(response, "Arn")
                )
            return self._identities[place]

    def get_connection(self, place: Place) -> Connection:
        """Return the connection for requests without a rate limit, such as S3's."""
        if place not in self._connections:
            self._connections[place] = Connection(
                place, self._endpoints, self._threads, self._may_change, self.requests
            )
        return self._connections[place]

    def get_training_jobs(self, place: Place) -> TrainingJobs:
        """Return the client for the training jobs in this place."""
        return TrainingJobs(partial(self.send_request, place, "sagemaker"))

    def get_poller(self, place: Place) -> TrainingJobPoller:
        """Return the poller of this place. It ends with its last watch, or with `close`."""
        if place not in self._pollers:
            poller = self._pollers[place] = TrainingJobPoller(
                self.get_training_jobs(place), place, partial(self._end_poller, place), self._jitter
            )
            self._tasks[place] = asyncio.create_task(poller.run(), name=f"poller {place}")
        return self._pollers[place]

    async def close(self) -> None:
        """End all pollers, and start no more requests."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.close()
        for connection in self._connections.values():
            connection.close()

    def _end_poller(self, place: Place) -> None:
        # Poll a place only while a job needs it.
        self._pollers.pop(place)
        self._tasks.pop(place).cancel()

    async def _find_account(self, place: Place) -> str:
        if place.assume_role_arn:
            return parse_account_id(place.assume_role_arn)
        try:
            return (await self.get_identity(place)).account
        except Unavailable:
            # STS may be unreachable if the network has an endpoint only for SageMaker.
            return ""
