"""kopf's watch of the resources: it only reads, and after any interruption of a watch it soon reports the next
event.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cluster.api_proxy import PASS, Answer, ApiProxy, Call, Drop, Fate, Lose, Stream, error_event
from cluster.operator.cluster_jobs import Jobs
from muster.clients.kubernetes.client import Change
from muster.controller.jobs.job_memory import JobMemory
from muster.controller.watch.resources import ResourceWatch

SOON_SECONDS = 20.0
STOP_SECONDS = 1.0


@dataclass
class Heard:
    """The reported jobs, by name."""

    changes: list[tuple[str, str]] = field(default_factory=list)
    more: asyncio.Condition = field(default_factory=asyncio.Condition)

    def take(self, change: Change) -> None:
        metadata = change.object["metadata"]
        assert isinstance(metadata, dict)
        self.changes.append((change.type, str(metadata["name"])))
        asyncio.get_running_loop().create_task(self._notify())

    async def until(self, kind: str, name: str) -> None:
        async with asyncio.timeout(SOON_SECONDS), self.more:
            await self.more.wait_for(lambda: (kind, name) in self.changes)

    async def _notify(self) -> None:
        async with self.more:
            self.more.notify_all()


@dataclass
class Site:
    proxy: ApiProxy
    jobs: Jobs
    heard: Heard
    watch: ResourceWatch

    async def apply(self, name: str) -> None:
        await asyncio.to_thread(self.jobs.apply, name, suspend=True)


@pytest.fixture
def known_jobs(crd: None, jobs: Jobs) -> Jobs:
    """Jobs on a cluster with the CRD and without an operator."""
    del crd  # the cluster has it
    return jobs


@asynccontextmanager
async def watching(jobs: Jobs, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    async with ApiProxy.serve(folder, jobs.kubectl.kubeconfig) as proxy:
        patch.setenv("KUBECONFIG", str(proxy.kubeconfig))
        heard = Heard()
        watch = ResourceWatch((jobs.namespace,), JobMemory(), heard.take, time.monotonic, random.random, lambda _: True)
        watch.start()
        try:
            yield Site(proxy, jobs, heard, watch)
        finally:
            watch.stop()
            async with asyncio.timeout(STOP_SECONDS + SOON_SECONDS):
                await watch.has_ended.wait()


@dataclass
class OneWatch:
    """Decides about the next watch. All other calls pass."""

    fate: Fate
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, call: Call) -> Fate:
        if call.verb != "watch" or self.over.is_set():
            return PASS
        self.over.set()
        return self.fate


async def test_it_reads_and_does_nothing_else(
    known_jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(known_jobs, tmp_path, monkeypatch) as site:
        await site.apply("one")
        await site.heard.until("ADDED", "one")
        await asyncio.to_thread(known_jobs.patch, "one", activeDeadlineSeconds=60)
        await site.heard.until("MODIFIED", "one")
        await asyncio.to_thread(known_jobs.run, "delete", "dtj/one")
        await site.heard.until("DELETED", "one")
        site.watch.stop()
        async with asyncio.timeout(STOP_SECONDS):
            await site.watch.has_ended.wait()
    assert {call.method for call in site.proxy.calls} == {"GET"}
    about = {(call.verb, call.resource) for call in site.proxy.calls if call.namespace}
    assert about == {("list", "distributedtrainingjobs"), ("watch", "distributedtrainingjobs")}


@pytest.mark.parametrize(
    "fate",
    [
        Answer(410, "Expired"),
        Answer(403, "Forbidden"),
        Answer(429, "TooManyRequests", retry_after=1),
        Answer(500, "InternalError"),
        Stream(error_event(410, "Expired")),
        Stream(error_event(500, "InternalError")),
        Stream(b""),
        Drop(),
        Lose(),
    ],
    ids=["410", "403", "429", "500", "410 event", "500 event", "empty", "dropped", "cut off"],
)
async def test_the_operator_gets_the_next_event_after_a_watch_fails(
    known_jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fate: Fate
) -> None:
    async with watching(known_jobs, tmp_path, monkeypatch) as site:
        watch = site.proxy.decide = OneWatch(fate)
        await site.apply("early")
        await site.heard.until("ADDED", "early")
        async with asyncio.timeout(SOON_SECONDS):
            await watch.over.wait()  # a late list has reported the job, and the first watch follows it
        await site.apply("late")
        await site.heard.until("ADDED", "late")


async def test_a_cut_watch_goes_on(known_jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(known_jobs, tmp_path, monkeypatch) as site:
        await site.apply("early")
        await site.heard.until("ADDED", "early")
        site.proxy.cut_watches()
        await site.apply("late")
        await site.heard.until("ADDED", "late")


def deep(levels: int) -> str:
    return '{"f:a":' * levels + "{}" + "}" * levels


def hostile(name: str, namespace: str) -> str:
    """Return a job that the API server accepts and Python's parser does not."""
    fields = '{"manager":"m","operation":"Update","apiVersion":"muster.dev/v1alpha1","fieldsType":"FieldsV1"'
    metadata = f'{{"name":"{name}","namespace":"{namespace}","managedFields":[{fields},"fieldsV1":{deep(3000)}}}]}}'
    template = f'{{"spec":{{"affinity":{deep(3000)}}}}}'
    spec = f'{{"launcher":{{"direct":{{}}}},"image":"x","command":["x"],"template":{template}}}'
    kind = '"apiVersion":"muster.dev/v1alpha1","kind":"DistributedTrainingJob"'
    return f'{{{kind},"metadata":{metadata},"spec":{spec}}}'


async def test_a_job_that_nobody_can_parse_is_heard_of_and_so_are_all_others(
    known_jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = ("create", "--validate=false", "-f", "-")
    await asyncio.to_thread(known_jobs.run, *apply, stdin=hostile("listed", known_jobs.namespace))
    async with watching(known_jobs, tmp_path, monkeypatch) as site:
        await site.heard.until("ADDED", "listed")
        await asyncio.to_thread(known_jobs.run, *apply, stdin=hostile("watched", known_jobs.namespace))
        await site.heard.until("ADDED", "watched")
        await site.apply("good")
        await site.heard.until("ADDED", "good")
        await asyncio.to_thread(known_jobs.run, "delete", "dtj/listed", "dtj/watched")
        await site.heard.until("DELETED", "watched")
    assert [call.verb for call in site.proxy.calls if call.namespace].count("list") == 1
