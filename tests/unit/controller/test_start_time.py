"""The start of a job is written before the commands, and remains in the status, even if writes fail."""

import asyncio
import copy
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_server import ApiServer, Mishap, lose_response, make_failure, served
from muster.api.spec.job import Job
from muster.clients.kubernetes.client import Change
from muster.core.actions import Action, SendCommand
from muster.core.facts import JobFacts, ProcessFacts, ProcessState
from muster.core.reports.merge import merge_report
from muster_worker.contract.schema import AgentPhase, Command, CommandKind, RankReport, RankState, Report
from unit.controller.cluster_resources import CREATED, resource
from unit.controller.jobs.test_jobs import idle
from unit.controller.worlds import Site, World


@dataclass
class Gang(World):
    """One node whose agent is ready and obeys its commands, which are in `commands`."""

    process: ProcessFacts = field(default_factory=lambda: ProcessFacts(ProcessState.RUNNING))
    commands: list[Command] = field(default_factory=list)

    async def observe(self, job: Job) -> JobFacts:
        facts = await super().observe(job)
        command = self.commands[-1] if self.commands else None
        report = Report("u-1", 0, 0, 0, 1, AgentPhase.READY, "10.0.0.1", 29500)
        if command is not None:
            ranks = (RankReport(0, 0, RankState.RUNNING, started_age=1.0),)
            report = replace(report, attempt=command.attempt, phase=AgentPhase.RUNNING, ranks=ranks)
        agent = merge_report(None, report, facts.created_at)
        return replace(facts, nodes=(replace(facts.nodes[0], agent=agent, command=command),))

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        await super().apply(job, actions)
        self.commands += [action.command for action in actions if isinstance(action, SendCommand)]


@asynccontextmanager
async def leader(server: ApiServer, gang: Gang, folder: Path) -> AsyncIterator[Site]:
    """Yield a new leader."""
    async with served(server, folder) as client:
        here = Site(server, client, gang)
        try:
            yield here
        finally:
            await here.jobs.stop(0.0)


async def runs(here: Site) -> None:
    """Wait until the status reports running ranks."""
    async with asyncio.timeout(30):
        while here.server.status.get("phase") != "Running":
            here.jobs.wake("u-1")
            await idle(here)


def started_once(server: ApiServer, gang: Gang) -> None:
    """The nodes got Start once, after the start was written, and the start remained in the status."""
    assert [(command.kind, command.attempt) for command in gang.commands] == [(CommandKind.START, 1)]
    assert (server.status["attempt"], server.status["phase"]) == (1, "Running")
    starts = [patch["status"]["startTime"] for patch in server.patches if "startTime" in patch["status"]]
    assert None not in starts
    assert server.status["startTime"] in starts


def conflict(server: ApiServer) -> web.Response:
    """Another client writes just before the operator, whose status is from an older version."""
    server.change(labels={"team": "vision"})
    return server.merge_status(server.patches[-1])


@pytest.mark.parametrize(
    "mishaps",
    [
        [],
        [conflict],
        [conflict, lambda _: make_failure(503, "ServiceUnavailable", "etcd")],
        [lose_response],
        [lambda _: make_failure(500, "InternalError", "etcd"), lose_response],
        [lambda _: None],
    ],
    ids=["none", "conflict", "no refetch", "lost answer", "refused, then lost", "no answer"],
)
async def test_the_start_is_written_once_and_sent_once(tmp_path: Path, mishaps: list[Mishap]) -> None:
    server, gang = ApiServer(dict(resource())), Gang()
    server.mishaps += mishaps
    async with leader(server, gang, tmp_path) as here:
        here.hear()
        await runs(here)
    started_once(server, gang)


async def test_what_is_heard_late_of_earlier_versions_takes_nothing_back(tmp_path: Path) -> None:
    server, gang = ApiServer(dict(resource())), Gang()
    first = copy.deepcopy(server.resource)
    assert first is not None
    async with leader(server, gang, tmp_path) as here:
        here.hear()
        await runs(here)
        for change in (Change("MODIFIED", first), Change("ADDED", first)):
            here.jobs.handle_change(change)
            here.jobs.wake("u-1")
            await idle(here)
    started_once(server, gang)


async def test_the_next_leader_goes_on_where_the_last_one_died(tmp_path: Path) -> None:
    server, gang = ApiServer(dict(resource())), Gang()
    # It died between the write and the command.
    status = {"phase": "Starting", "attempt": 1, "startTime": CREATED}
    assert server.resource is not None
    server.resource["status"] = status
    async with leader(server, gang, tmp_path) as here:
        here.hear()
        await runs(here)
    assert [(command.kind, command.attempt) for command in gang.commands] == [(CommandKind.START, 1)]
    assert server.status["startTime"] == CREATED
