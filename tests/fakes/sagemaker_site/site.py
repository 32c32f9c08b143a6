"""Successive operators that run SageMaker jobs, in virtual time. The services live longer than an operator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, cast

from fakes.sagemaker_service.documented import read_documented_policy
from fakes.sagemaker_service.service import NoReply, Reply, Service
from fakes.sagemaker_service.wire import join
from fakes.sagemaker_site import stored
from fakes.sagemaker_site.logs import TARGET, Logs
from muster.api.config.operator import OperatorConfig
from muster.api.spec.job import Job
from muster.api.status.sagemaker import SageMakerStatus
from muster.api.status.status import Status
from muster.backends.node_jobs import NodeJobs
from muster.clients.aws.client import Aws
from muster.clients.kubernetes.client import Change, Client
from muster.clients.kubernetes.session import Request, Session
from muster.collector.store import RankStore
from muster.controller.backends import apply_defaults, make_sagemaker_jobs
from muster.controller.jobs.job_controller import JobControllerDependencies
from muster.controller.jobs.jobs import Jobs
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.controller.status.events import EventPoster, StatusPublisher
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import StatusWriterDependencies
from muster.core.actions import Action
from muster.core.edited_source import RequestedSource
from muster.core.facts import JobFacts
from muster.objects.aws.access import AwsAccess
from unit.render.sagemaker.builders import ROLE

T0 = 1_795_233_600.0  # 2026-11-21T04:00:00Z
HERE = AwsAccess("us-west-2")
THERE = AwsAccess("eu-west-1")
IMAGE = "111122223333.dkr.ecr.us-west-2.amazonaws.com/train:1"

Fate = Literal["pass", "before", "after"]
"""What happens to an operator at one of its calls: it continues, or it is killed before or after the call is executed.
"""


def make_spec(**changes: Any) -> dict[str, Any]:
    """Return a job that SageMaker's container starts by itself."""
    return {
        "backend": "SageMaker",
        "nodes": 2,
        "procsPerNode": 1,
        "launcher": {"perNode": {}},
        "image": IMAGE,
        "command": ["python", "train.py"],
        "output": {"s3": "s3://team/out"},
        "sagemaker": {"role": ROLE, "instanceType": "ml.c5.xlarge", "region": HERE.region},
        **changes,
    }


class _NoPods:
    async def observe(self, job: Job) -> JobFacts:
        raise AssertionError(f"{job.metadata.name} has pods")

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        raise AssertionError(f"{job.metadata.name} has pods: {actions}")

    async def find_source(self, job: Job, name: str) -> RequestedSource:
        raise AssertionError(f"{job.metadata.name} names {name}")

    def forget(self, job_uid: str) -> None:
        """Do nothing: there is no state to delete."""


class Wire:
    """Connections that a test's operators share, one after the other: creating a botocore client takes long."""

    def __init__(self) -> None:
        self.aws = Aws()
        self.handle: Callable[[Mapping[str, str], bytes], Reply | NoReply] | None = None
        for aws_access in (HERE, THERE):
            join(self.aws, aws_access, cast("Service", _Answers(self)), keeps_clients=True)


@dataclass(frozen=True)
class _Answers:
    wire: Wire

    def handle(self, headers: Mapping[str, str], body: bytes) -> Reply | NoReply:
        assert self.wire.handle is not None
        return self.wire.handle(headers, body)


@dataclass
class Operator:
    """One operator process, as leader."""

    site: Site
    is_alive: bool = True
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.aws = Aws(jitter=lambda: 0.5)
        # The same clients, without the state of the previous operator.
        self.aws._connections |= self.site.wire.aws._connections
        client = Client(cast("Session", stored.Session(self._ask)))
        life = make_sagemaker_jobs(self.aws, client, OperatorConfig(), self.site.admit, self.site.get_now, self._wake)
        events = EventPoster(client, "operator", self.site.get_now, lambda: 0.5)
        tools = JobControllerDependencies(
            backends={"Kubernetes": NodeJobs(_NoPods(), 1), "SageMaker": life},
            store=RankStore(),
            status_writer=StatusWriterDependencies(
                client, WriteBudget(), self.site.get_now, StatusPublisher(events), lambda: True
            ),
            apply_defaults=partial(apply_defaults, config=OperatorConfig()),
            admit=self.site.admit,
            clock=self.site.get_now,
            processor=ProcessorQueue(lambda: 0.0),
            jitter=lambda: 0.5,
        )
        self.life = life
        self.jobs = Jobs(tools, events.post_missed, life.forget, lambda: None)
        self._tasks.append(asyncio.create_task(events.run()))
        for name in tuple(self.site.stored.kept):
            resource = self.site.stored.read(name)
            assert resource is not None
            self.jobs.handle_change(Change("ADDED", resource))

    async def end(self) -> None:
        """Close the remaining resources of the operator."""
        self.is_alive = False
        await self.jobs.stop(0.0)
        self.life.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.aws.close()

    def handle(self, headers: Mapping[str, str], body: bytes) -> Reply | NoReply:
        """Handle a request to AWS."""
        what = headers.get("X-Amz-Target", "STS").removeprefix("SageMaker.").removeprefix(TARGET)
        fate = self.site.decide_fate(what) if self.is_alive else "before"
        if fate == "before":
            self.die()
            return NoReply(is_silent=False)
        reply = self._answer(headers, body)
        if fate == "after":
            self.die()
            return NoReply(is_silent=False)
        return reply

    def _answer(self, headers: Mapping[str, str], body: bytes) -> Reply | NoReply:
        target = headers.get("X-Amz-Target", "")
        if not target.startswith(TARGET):
            return self.site.service.handle(headers, body)
        answer = self.site.logs.answer(target.removeprefix(TARGET), json.loads(body))
        return Reply(200, json.dumps(answer), {"Content-Type": "application/x-amz-json-1.1"})

    async def _ask(self, request: Request) -> dict[str, Any]:
        fate = self.site.decide_fate(_describe_request(request)) if self.is_alive else "before"
        if fate == "before":
            await self._dying()
        answer = self.site.stored.answer(request)
        if fate == "after":
            await self._dying()
        return answer

    async def _dying(self) -> None:
        self.die()
        await asyncio.Event().wait()

    def die(self) -> None:
        """Kill the operator (SIGKILL): no further request of it is executed."""
        if self.is_alive:
            self.is_alive = False
            self.site.died.set()

    def _wake(self, uid: str) -> None:
        self.jobs.wake(uid)


@dataclass
class Site:
    """`fate` returns what happens to the operator at each call: "PATCH status", "CreateTrainingJob", ...

    `admit` decides what namespaces may use, as in `JobControllerDependencies`.
    """

    wire: Wire
    fate: Callable[[str], Fate] = lambda _: "pass"
    admit: Callable[[Job], None] = lambda _: None
    calls: list[str] = field(default_factory=list)
    died: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    deaths: int = 0

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        # With the permissions that the documentation lists for the operator, and no others.
        self.service = Service(lambda: datetime.fromtimestamp(self.get_now(), UTC), policy=read_documented_policy())
        self.logs = Logs(self.get_now)
        self.stored = stored.JobStore(self.get_now, self._tell)
        self.operator: Operator | None = None
        self._again = asyncio.create_task(self._keep_going())

    def get_now(self) -> float:
        """Unix seconds."""
        return T0 + self._loop.time() - self._began

    def decide_fate(self, what: str) -> Fate:
        """What happens to the operator at this call."""
        self.calls.append(what)
        return self.fate(what)

    def begin(self) -> None:
        """Start an operator as leader."""
        self.operator = Operator(self)
        self.wire.handle = self.operator.handle
        self.changed.set()

    def kill_operator(self) -> None:
        """Kill the operator; another one starts a little later."""
        assert self.operator is not None
        self.operator.die()

    async def close(self) -> None:
        """Stop everything."""
        self._again.cancel()
        await asyncio.gather(self._again, return_exceptions=True)
        if self.operator is not None:
            await self.operator.end()

    async def wait_until(self, holds: Callable[[], bool], seconds: float = 4_000.0) -> None:
        """Wait for a condition on resources or on the existence of an operator."""
        async with asyncio.timeout(seconds):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def wait_until_settled(self, seconds: float) -> None:
        """Wait for this time, and for an operator that is due to start."""
        await asyncio.sleep(seconds)
        await self.wait_until(lambda: self.operator is not None and self.operator.is_alive)

    def get_status(self, name: str = "vit") -> Status:
        """Return the job's stored status."""
        resource = self.stored.read(name)
        assert resource is not None
        return Status.model_validate_json(_dump_json(resource.get("status", {})), by_alias=True, by_name=False)

    def find_condition(self, kind: str, name: str = "vit") -> tuple[str, str, str]:
        """One of the job's conditions: status, reason, message."""
        result = next((one for one in self.get_status(name).conditions if one.type == kind), None)
        return ("", "", "") if result is None else (result.status, result.reason, result.message)

    def record(self, name: str = "vit") -> SageMakerStatus:
        """Return the status' record of the training job."""
        backend = self.get_status(name).backend
        assert backend is not None
        assert backend.sagemaker is not None
        return backend.sagemaker

    def record_if_any(self, name: str = "vit") -> SageMakerStatus | None:
        """Return the status' record of the training job; None if it doesn't exist yet."""
        backend = self.get_status(name).backend
        return None if backend is None else backend.sagemaker

    def get_phase(self, name: str = "vit") -> str:
        """Return the job's phase, "" if there is no such job."""
        resource = self.stored.read(name)
        return "" if resource is None else str(resource.get("status", {}).get("phase", ""))

    def _tell(self, change: Change) -> None:
        self.changed.set()
        operator = self.operator
        if operator is not None and operator.is_alive:
            self._loop.call_soon(lambda: operator.jobs.handle_change(change) if operator.is_alive else None)

    async def _keep_going(self) -> None:
        while True:
            await self.died.wait()
            self.died.clear()
            self.deaths += 1
            assert self.operator is not None
            await self.operator.end()
            # Until its Lease has expired.
            await asyncio.sleep(15.0)
            self.begin()


def _describe_request(request: Request) -> str:
    body: Any = request.body
    if request.method == "POST":
        return f"POST events {body['reason']}"
    if request.method == "PATCH":
        return "PATCH status" if request.path.endswith("/status") else "PATCH finalizers"
    return request.method


def _dump_json(value: Any) -> str:
    return json.dumps(value)
