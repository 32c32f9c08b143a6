"""AWS as muster asks it: every place, each request at its account's pace."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from muster.api.role_arn import account_of
from muster.api.sagemaker_config import AwsEndpoints
from muster.aws import decode
from muster.aws.connection import Answer, Connection, Service, always
from muster.aws.errors import Unavailable
from muster.aws.gate import Gate
from muster.aws.place import Place
from muster.aws.quotas import QUOTAS
from muster.aws.sweep import Sweep
from muster.aws.threads import Threads
from muster.aws.training_jobs import TrainingJobs


@dataclass(frozen=True)
class Identity:
    """Who muster is to AWS."""

    account: str
    arn: str


class Aws:
    """Belongs to one event loop. Places share an account's pace, whichever role they ask as.

    `chance` gives numbers from 0 to 1, by which pauses differ. What changes something is sent only while
    `may_change()` holds, which is asked in threads.
    """

    def __init__(
        self,
        endpoints: AwsEndpoints | None = None,
        chance: Callable[[], float] = random.random,
        may_change: Callable[[], bool] = always,
    ) -> None:
        self._endpoints = endpoints or AwsEndpoints()
        self._chance = chance
        self._may_change = may_change
        self._threads = Threads()
        self._connections: dict[Place, Connection] = {}
        self._gates: dict[tuple[str, str, str], Gate] = {}
        self._identities: dict[Place, Identity] = {}
        self._identifying: dict[Place, asyncio.Lock] = {}
        self._sweeps: dict[Place, Sweep] = {}
        self._tasks: dict[Place, asyncio.Task[None]] = {}

    async def ask(self, place: Place, service: Service, operation: str, request: Mapping[str, object]) -> Answer:
        """What AWS answers, in its turn. Raises AwsError. `operation` is named as in the API: `GetLogEvents`."""
        quota = QUOTAS.get(operation)
        if quota is None:
            return await self.connection(place).ask(service, operation, request)
        key = (await self._account(place), place.region, operation)
        if key not in self._gates:
            self._gates[key] = Gate(quota)
        async with self._gates[key].turn():
            return await self.connection(place).ask(service, operation, request)

    async def identity(self, place: Place) -> Identity:
        """Account and ARN. Raises AwsError."""
        # All jobs ask when an operator begins to lead.
        async with self._identifying.setdefault(place, asyncio.Lock()):
            if place not in self._identities:
                answer = await self.connection(place).ask("sts", "GetCallerIdentity", {})
                self._identities[place] = Identity(decode.text(answer, "Account"), decode.text(answer, "Arn"))
            return self._identities[place]

    def connection(self, place: Place) -> Connection:
        """Requests without a pace of their own, such as S3's."""
        if place not in self._connections:
            self._connections[place] = Connection(place, self._endpoints, self._threads, self._may_change)
        return self._connections[place]

    def training_jobs(self, place: Place) -> TrainingJobs:
        """SageMaker's training jobs there."""
        return TrainingJobs(partial(self.ask, place, "sagemaker"))

    def sweep(self, place: Place) -> Sweep:
        """What follows training jobs there, until none is watched or `close`."""
        if place not in self._sweeps:
            sweep = self._sweeps[place] = Sweep(
                self.training_jobs(place), place, partial(self._end_sweep, place), self._chance
            )
            self._tasks[place] = asyncio.create_task(sweep.run(), name=f"sweep {place}")
        return self._sweeps[place]

    async def close(self) -> None:
        """End all sweeps, and begin no more requests."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.close()
        for connection in self._connections.values():
            connection.close()

    def _end_sweep(self, place: Place) -> None:
        # Jobs may name any place: what was looked at once is not looked at for ever.
        self._sweeps.pop(place)
        self._tasks.pop(place).cancel()

    async def _account(self, place: Place) -> str:
        if place.assume_role_arn:
            return account_of(place.assume_role_arn)
        try:
            return (await self.identity(place)).account
        except Unavailable:
            # Who reaches SageMaker may still not reach STS, from a network that has an endpoint for the one only.
            return ""
