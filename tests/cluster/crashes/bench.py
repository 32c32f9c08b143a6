"""A namespace with its own operator, whose calls all go through a proxy; it runs one scenario at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cluster.api_proxy import PASS, ApiProxy, Call, Fate
from cluster.crashes.endings import Ending
from cluster.crashes.footprints import Step, job_of, steps, what_of
from cluster.crashes.lives import Life, NotReached, Place
from cluster.crashes.operator_fork import OperatorFork
from cluster.places import state
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS, LEASES, SECRETS

LEASE = "lead"
LOOK_SECONDS = 0.2
END_SECONDS = 90.0


class Accident(Protocol):
    """Fails or delays some of a scenario's calls."""

    def befall(self, what: str) -> Fate:
        """Return what happens to this call."""

    @property
    def happened(self) -> bool:
        """Whether a call was affected."""


@dataclass
class AtStep:
    """Affects `count` calls of one kind, from a step on."""

    step: Step
    fate: Callable[[], Fate]
    times: int = 1
    _calls: int = 0

    def befall(self, what: str) -> Fate:
        if what != self.step.what:
            return PASS
        self._calls += 1
        return self.fate() if self.step.nth <= self._calls < self.step.nth + self.times else PASS

    @property
    def happened(self) -> bool:
        return self._calls >= self.step.nth


@dataclass
class AtEveryStep:
    """Affects the first call of each kind."""

    fate: Callable[[], Fate]
    _met: set[str] = field(default_factory=set)

    def befall(self, what: str) -> Fate:
        if what in self._met:
            return PASS
        self._met.add(what)
        return self.fate()

    @property
    def happened(self) -> bool:
        return bool(self._met)


@dataclass(frozen=True)
class Together:
    """Several accidents in one scenario. The first accident that matches a call is used."""

    accidents: tuple[Accident, ...]

    def befall(self, what: str) -> Fate:
        fates = [accident.befall(what) for accident in self.accidents]
        return next((fate for fate in fates if fate != PASS), PASS)

    @property
    def happened(self) -> bool:
        return any(accident.happened for accident in self.accidents)


@dataclass
class Bench:
    """`run` runs a scenario; `names` returns unused job names. `watch_fate` is called for each watch."""

    place: Place
    proxy: ApiProxy
    operator: OperatorFork
    names: Callable[[Life], str]
    watch_fate: Callable[[Call], Fate] = lambda _: PASS
    _replacing: asyncio.Task[None] | None = None
    _accidents: dict[str | None, Accident] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.proxy.decide = self._decide

    @classmethod
    @contextlib.asynccontextmanager
    async def ready(cls, place: Place, folder: Path, names: Callable[[Life], str]) -> AsyncIterator[Bench]:
        """Yield a bench without a running operator."""
        async with ApiProxy.serve(folder, state().kubeconfig) as proxy:
            operator = OperatorFork(proxy.kubeconfig, place.namespace, folder / "operator.log")
            bench = cls(place, proxy, operator, names)
            try:
                yield bench
            finally:
                await bench._replaced()
                operator.end()

    async def record(self, life: Life) -> tuple[tuple[Step, ...], Ending]:
        """Run a scenario without accidents; return its calls and its end. Raises `NotReached`."""
        job = self.names(life)
        self.operator.ensure()
        await life.begin(self.place, job)
        await life.live(self.place, job)
        await self.place.stage(job, life.is_over, "over")
        result = self.place.ending(job)
        await self._forget(job)
        return steps(self.proxy.calls, job), result

    async def record_start(self, life: Life) -> tuple[Step, ...]:
        """Return the calls of an operator's start with a first job, each kind once. Raises `NotReached`."""
        await self.clear()
        await self.record(life)
        return tuple(step for step in steps(self.proxy.calls, None) if step.nth == 1)

    async def run(self, life: Life, accident: Accident, clean: Ending) -> str | None:
        """Run a scenario with an accident; return what is wrong with its end, "" for nothing, None if the accident did
        not happen.
        """
        self.operator.ensure()
        job = self.names(life)
        self._accidents[job] = accident
        try:
            return await self._live(life, job, accident, clean)
        finally:
            del self._accidents[job]

    async def start(self, life: Life, accident: Accident, clean: Ending) -> str | None:
        """Run an accident in the operator's own start, in a namespace where none was before."""
        await self.clear()
        self._accidents[None] = accident
        try:
            self.operator.start()
            return await self._live(life, self.names(life), accident, clean)
        finally:
            del self._accidents[None]

    async def clear(self) -> None:
        """Stop the operator, and delete what it created."""
        self.operator.end()
        self.proxy.calls.clear()
        await self.place.client.delete(LEASES, self.place.namespace, LEASE)
        await self.place.client.delete(SECRETS, self.place.namespace, f"{LEASE}-collector")

    def kill(self) -> None:
        """Kill the operator with SIGKILL; another one starts."""
        self.operator.kill()
        self._replacing = asyncio.create_task(self._replace())

    async def _live(self, life: Life, job: str, accident: Accident, clean: Ending) -> str | None:
        try:
            await life.begin(self.place, job)
            await life.live(self.place, job)
            await self.place.world.until(job, lambda _: self.place.ending(job) == clean, END_SECONDS)
            result = self.place.wrongs(job, clean)
        except NotReached as halt:
            return str(halt)
        finally:
            await self._replaced()
            await self._forget(job)
        return result if result or accident.happened else None

    def _decide(self, call: Call) -> Fate:
        if call.verb == "watch":
            return self.watch_fate(call)
        accident = self._accidents.get(job_of(call))
        return PASS if accident is None else accident.befall(what_of(call))

    async def _replace(self) -> None:
        """Start the next operator as if the dead one's Lease had expired: waiting for that would take too long."""
        await asyncio.to_thread(self.operator.end)
        client, namespace = self.place.client, self.place.namespace
        with contextlib.suppress(ApiError):
            await client.merge(LEASES, namespace, LEASE, {"spec": {"leaseDurationSeconds": 1}})
        await asyncio.to_thread(self.operator.start)

    async def _replaced(self) -> None:
        if self._replacing is not None:
            await self._replacing
            self._replacing = None

    async def _forget(self, job: str) -> None:
        await self.place.client.delete(JOBS, self.place.namespace, job)
