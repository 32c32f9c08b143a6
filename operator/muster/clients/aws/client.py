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
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import Unavailable


@dataclass(frozen=True)
class CallerIdentity:
    """muster's identity in AWS."""

    account: str
    arn: str


class Aws:
    """The client of AWS. Only one event loop may use it.

    Rate limits apply to an account and a region: all roles of one account share them. `jitter` returns a random number
    from 0 to 1. The client sends requests that change AWS only while `is_change_allowed()` returns True. It calls
    `is_change_allowed` in worker threads. `request_counter` counts requests by service, operation and code.
    """

    def __init__(
        self,
        endpoints: AwsEndpoints | None = None,
        jitter: Callable[[], float] = random.random,
        is_change_allowed: Callable[[], bool] = always_true,
    ) -> None:
        self.request_counter = RequestCounter()
        self._endpoints = endpoints or AwsEndpoints()
        self._jitter = jitter
        self._is_change_allowed = is_change_allowed
        self._threads = ThreadPool()
        self._connections: dict[AwsAccess, Connection] = {}
        self._rate_limiters: dict[tuple[str, str, str], RateLimiter] = {}
        self._identities: dict[AwsAccess, CallerIdentity] = {}
        self._identity_locks: dict[AwsAccess, asyncio.Lock] = {}
        self._pollers: dict[AwsAccess, TrainingJobPoller] = {}
        self._tasks: dict[AwsAccess, asyncio.Task[None]] = {}

    async def send_request(
        self, aws_access: AwsAccess, service: Service, operation: str, request: Mapping[str, object]
    ) -> Response:
        """Send a request, within its rate limit. Raises AwsError. `operation` has the API's name: `GetLogEvents`."""
        quota = QUOTAS.get(operation)
        if quota is None:
            return await self.get_connection(aws_access).send_request(service, operation, request)
        key = (await self._find_account(aws_access), aws_access.region, operation)
        if key not in self._rate_limiters:
            self._rate_limiters[key] = RateLimiter(quota)
        async with self._rate_limiters[key].slot():
            return await self.get_connection(aws_access).send_request(service, operation, request)

    async def get_identity(self, aws_access: AwsAccess) -> CallerIdentity:
        """Return the account and the ARN. Raises AwsError."""
        # A lock, because all jobs call this when an operator becomes the leader.
        async with self._identity_locks.setdefault(aws_access, asyncio.Lock()):
            if aws_access not in self._identities:
                response = await self.get_connection(aws_access).send_request("sts", "GetCallerIdentity", {})
                self._identities[aws_access] = CallerIdentity(
                    decode.read_text(response, "Account"), decode.read_text(response, "Arn")
                )
            return self._identities[aws_access]

    def get_connection(self, aws_access: AwsAccess) -> Connection:
        """Return the connection for requests without a rate limit, such as S3's."""
        if aws_access not in self._connections:
            self._connections[aws_access] = Connection(
                aws_access, self._endpoints, self._threads, self._is_change_allowed, self.request_counter
            )
        return self._connections[aws_access]

    def get_training_jobs(self, aws_access: AwsAccess) -> TrainingJobs:
        """Return the client for the training jobs in this region, with this role."""
        return TrainingJobs(partial(self.send_request, aws_access, "sagemaker"))

    def get_poller(self, aws_access: AwsAccess) -> TrainingJobPoller:
        """Return the poller of the training jobs in this region, with this role; start it if it does not run.

        It runs until its last watch is closed, or until `close` is called.
        """
        if aws_access not in self._pollers:
            poller = self._pollers[aws_access] = TrainingJobPoller(
                self.get_training_jobs(aws_access), aws_access, partial(self._stop_poller, aws_access), self._jitter
            )
            self._tasks[aws_access] = asyncio.create_task(poller.run(), name=f"poller {aws_access}")
        return self._pollers[aws_access]

    async def close(self) -> None:
        """Stop all pollers, and start no more requests."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.close()
        for connection in self._connections.values():
            connection.close()

    def _stop_poller(self, aws_access: AwsAccess) -> None:
        # Poll only while a job needs it.
        self._pollers.pop(aws_access)
        self._tasks.pop(aws_access).cancel()

    async def _find_account(self, aws_access: AwsAccess) -> str:
        if aws_access.assume_role_arn:
            return parse_account_id(aws_access.assume_role_arn)
        try:
            return (await self.get_identity(aws_access)).account
        except Unavailable:
            # STS may be unreachable if the network has an endpoint only for SageMaker.
            return ""
