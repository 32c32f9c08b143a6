"""Making a job's pods: rehearsed first, then all at once; what refuses them becomes the job's or the nodes' problem."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from muster.api.spec.job import Job
from muster.backends.kubernetes.children import Children
from muster.backends.kubernetes.ledger import Ledger
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.fair_slots import FairSlots
from muster.collector.store import RankStore
from muster.core.actions import CreateNode
from muster.core.facts import Problem
from muster.diagnose.kubernetes.refusals import Refusal, name_taken, read_refusal
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import PODS, Object
from muster.objects.kubernetes.names import pod_name
from muster.objects.kubernetes.pods import read_pod
from muster.render.kubernetes import render
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.owner_patches import kinds
from muster.render.kubernetes.setting import Setting

AT_ONCE = 64
"""Pods that are created at a time: as many requests as the client has in flight."""

UNTOLD_SECONDS = 10.0
"""A pod that the informer doesn't tell of so long after it was created may be gone already, unseen."""


@dataclass
class _Round:
    """Pods of one job that are made together. `barred` says what none of the job's pods gets past."""

    job: Job
    ledger: Ledger
    held: dict[int, Problem] = field(default_factory=dict)
    barred: Refusal | None = None


@dataclass
class Creation:
    """Makes pods for all jobs. `clock` gives Unix seconds."""

    client: Client
    pods: PodIndex
    store: RankStore
    setting: Setting
    children: Children
    clock: Callable[[], float]
    _slots: FairSlots = field(default_factory=lambda: FairSlots(AT_ONCE))
    _rendering: FairSlots = field(default_factory=lambda: FairSlots(1))

    async def create(self, job: Job, ledger: Ledger, actions: Sequence[CreateNode]) -> None:
        """Make these nodes' pods, and what they need. Raises `ApiError` for what is to be tried again as it is.

        What is refused stands in `ledger` afterwards; until it is time to ask again nothing is done.
        """
        generation = job.metadata.generation
        if ledger.refusal(generation) is not None or self.clock() < ledger.backoff_until:
            return
        before = (ledger.refusal(generation), dict(ledger.held), dict(ledger.taken))
        turn = _Round(job, ledger)
        turn.barred = await self._prepare(job, ledger, actions)
        failures: list[ApiError] = []
        if turn.barred is None:
            failures = await self._create_all(turn, actions)
        self._note(ledger, turn, actions)
        if before != (ledger.refusal(generation), ledger.held, ledger.taken):
            self.pods.on_change(job.metadata.uid)
        asyncio.get_running_loop().call_later(UNTOLD_SECONDS, self._look_again, job.metadata.uid)
        # One request that got no answer did not keep the others' answers from being heard.
        if failures:
            raise failures[0]

    async def _prepare(self, job: Job, ledger: Ledger, actions: Sequence[CreateNode]) -> Refusal | None:
        # Volcano refuses pods of a missing group, in a dry run, too.
        refusal = await self.children.make_pod_group(job)
        if refusal is not None:
            return refusal
        if not ledger.is_rehearsed(job.metadata.generation):
            refusal = await self._rehearse(job, {action.node: action for action in actions})
            if refusal is not None:
                return refusal
            ledger.rehearsed(job.metadata.generation)
        authority = self.children.authority()
        refusal = await self.children.make(job)
        if refusal is None:
            ledger.authority = authority
        return refusal

    async def _rehearse(self, job: Job, actions: dict[int, CreateNode]) -> Refusal | None:
        """Ask the API server what it would say to one pod of each kind: a gang with a node missing is of no use."""
        for nodes in kinds(job):
            action = next((actions[node] for node in nodes if node in actions), None)
            if action is None:
                continue
            try:
                body = render.pod(job, action.node, action.replacement, self.setting)
                await self.client.rehearse(PODS, job.metadata.namespace, body)
            except NotRenderable as error:
                return Refusal(error.problem, is_final=True)
            except ApiError as error:
                # Whose it is shows when it is created.
                if not error.already_exists:
                    return _refusal(error, body, job)
        return None

    async def _create_all(self, turn: _Round, actions: Sequence[CreateNode]) -> list[ApiError]:
        # As many tasks as can be at work, and not one for each pod: to begin ten thousand of them takes a while.
        waiting, failures = iter(actions), list[ApiError]()
        crew = (self._create_some(turn, waiting, failures) for _ in range(min(AT_ONCE, len(actions))))
        for result in await asyncio.gather(*crew, return_exceptions=True):
            if result is not None:
                raise result
        return failures

    async def _create_some(self, turn: _Round, waiting: Iterator[CreateNode], failures: list[ApiError]) -> None:
        for action in waiting:
            # What one pod of the job is refused for, the next is, too.
            if turn.barred is not None:
                return
            try:
                await self._create_one(turn, action)
            except ApiError as error:
                failures.append(error)

    async def _create_one(self, turn: _Round, action: CreateNode) -> None:
        async with self._slots.slot(turn.job.metadata.namespace):
            # What one pod of the job is refused for, the next is, too.
            if turn.barred is not None:
                return
            job, namespace = turn.job, turn.job.metadata.namespace
            # What the last pod's agent said and was told is not the new one's.
            if action.replacement > 0:
                self.store.replace(job.metadata.uid, action.node)
            body = await self._rendered(job, action)
            name = pod_name(job.metadata.name, action.node, action.replacement)
            try:
                made = await self.client.create(PODS, namespace, body)
            except ApiError as error:
                if not error.already_exists:
                    turn.barred = _refusal(error, body, job)
                    return
                # An earlier request that got no answer made it, or the one that this operator follows.
                made = await self.client.get(PODS, namespace, name)
            pod = read_pod(made)
            if pod is not None and pod.job_uid == job.metadata.uid:
                self.pods.adopt(pod, self.clock())
            elif pod is not None and turn.ledger.is_left_behind(pod, self.clock()):
                turn.ledger.taken[action.node] = action.replacement
            else:
                turn.held[action.node] = name_taken("Pod", name, namespace)

    async def _rendered(self, job: Job, action: CreateNode) -> Object:
        """A node's pod. Of many that are wanted at once one is rendered in each round of the event loop."""
        async with self._rendering.slot(job.metadata.namespace):
            await asyncio.sleep(0)
            return render.pod(job, action.node, action.replacement, self.setting)

    def _note(self, ledger: Ledger, turn: _Round, actions: Sequence[CreateNode]) -> None:
        barred = turn.barred
        if barred is not None and barred.is_final:
            ledger.refuse(turn.job.metadata.generation, barred.problem)
            return
        missing = [action.node for action in actions if self.pods.newest(turn.job.metadata.uid, action.node) is None]
        held = dict.fromkeys(missing, barred.problem) if barred is not None else {}
        ledger.hold({**held, **turn.held}, self.clock())

    def _look_again(self, job_uid: str) -> None:
        if self.pods.untold(job_uid):
            self.pods.on_change(job_uid)


def _refusal(error: ApiError, body: Object, job: Job) -> Refusal:
    refusal = read_refusal(error, body, job)
    if refusal is None:
        raise error
    return refusal
