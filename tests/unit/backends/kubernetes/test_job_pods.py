"""The pods of a job: what the backend does when they can't be created, disappear, or are too many."""

import json
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.job_state import MAX_BACKOFF_SECONDS
from muster.backends.kubernetes.pod_creator import UNCONFIRMED_SECONDS
from muster.clients.kubernetes.client import Change
from muster.core.actions import CreateNode, RemoveSurplusPod, SendCommand
from muster.core.facts import NodeFacts, ProcessState
from muster.core.problem import Problem
from muster.core.reports.job_shape import make_job_shape
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster_worker.contract.schema import Command, CommandKind
from support.clock import Clock
from unit.backends.kubernetes.test_lost_children import SERVICE, Objects, serve
from unit.backends.kubernetes.test_slices import get_time, make_backend
from unit.render.kubernetes.cluster_jobs import UID, cluster_job

WAITING, MISSING = ProcessState.WAITING, ProcessState.MISSING
FIRST_PODS = (CreateNode(0, 0), CreateNode(1, 0))


def make_job(generation: int = 1, **spec: JSON) -> Job:
    job = cluster_job(procsPerNode=1, **spec)
    created = {"creation_timestamp": "2027-01-15T08:00:00Z", "generation": generation}
    return job.model_copy(update={"metadata": job.metadata.model_copy(update=created)})


JOB = make_job()


def list_pods(objects: Objects) -> list[str]:
    return sorted(key.removeprefix("pods/") for key in objects.stored if key.startswith("pods/"))


async def observe_nodes(backend: KubernetesBackend, job: Job = JOB) -> tuple[NodeFacts, ...]:
    return (await backend.observe(job)).nodes


async def test_a_pod_whose_name_is_taken_is_created_after_the_backoff(tmp_path: Path) -> None:
    clock = Clock(get_time())
    async with serve(tmp_path, clock) as (objects, backend):
        objects.stored["pods/vit-0-0"] = {"metadata": {"name": "vit-0-0", "uid": "a stranger's"}}
        await backend.apply(JOB, FIRST_PODS)
        taken, made = await observe_nodes(backend)
        assert taken.process.problem is not None
        assert (taken.process.problem.reason, made.process.state) == ("NameTaken", WAITING)

        del objects.stored["pods/vit-0-0"]
        await backend.apply(JOB, [CreateNode(0, 0)])
        assert list_pods(objects) == ["vit-1-0"]
        clock.now += MAX_BACKOFF_SECONDS
        await backend.apply(JOB, [CreateNode(0, 0)])
        nodes = await observe_nodes(backend)
    assert [(node.process.state, node.process.problem) for node in nodes] == [(WAITING, None)] * 2


@pytest.mark.parametrize("key", [SERVICE, "configmaps/vit-muster"])
async def test_no_pod_is_created_while_the_name_of_another_object_is_taken(tmp_path: Path, key: str) -> None:
    async with serve(tmp_path) as (objects, backend):
        objects.stored[key] = {"metadata": {"name": "vit-muster", "uid": "a stranger's"}}
        await backend.apply(JOB, FIRST_PODS)
        problems = [node.process.problem for node in await observe_nodes(backend)]
        assert [problem and problem.reason for problem in problems] == ["NameTaken"] * 2
        assert list_pods(objects) == []


async def test_answers_that_are_lost_make_no_second_pod(tmp_path: Path) -> None:
    async with serve(tmp_path) as (objects, backend):
        objects.unanswered = {"services", "configmaps", "pods"}
        for _ in range(5):
            try:
                await backend.apply(JOB, FIRST_PODS)
            except ApiError as error:
                if error.status != NO_RESPONSE:
                    raise
        assert objects.unanswered == set()
        assert list_pods(objects) == ["vit-0-0", "vit-1-0"]
        assert [node.process.state for node in await observe_nodes(backend)] == [WAITING] * 2
        # The informer of a new operator has not reported anything yet.
        another = make_backend(backend.client)
        await another.apply(JOB, FIRST_PODS)
        assert list_pods(objects) == ["vit-0-0", "vit-1-0"]
        assert [node.process.state for node in await observe_nodes(another)] == [WAITING] * 2


async def test_a_refused_pod_holds_all_pods_until_the_spec_is_another(tmp_path: Path) -> None:
    message = 'strict decoding error: unknown field "spec.nodeSelectr"'
    async with serve(tmp_path) as (objects, backend):
        before = await observe_nodes(backend)
        assert [(node.process.state, node.process.replacement) for node in before] == [(MISSING, -1)] * 2
        objects.refusal = ApiError(400, "BadRequest", f'Pod in version "v1" cannot be handled as a Pod: {message}')
        await backend.apply(JOB, FIRST_PODS)
        refusal = (await backend.observe(JOB)).refusal
        assert refusal == Problem("InvalidObject", "spec.template.spec.nodeSelectr: unknown field")
        assert objects.take_requests("pods/vit-1-0") == []

        objects.refusal, changed = None, make_job(2)
        assert (await backend.observe(changed)).refusal is None
        await backend.apply(changed, FIRST_PODS)
        assert list_pods(objects) == ["vit-0-0", "vit-1-0"]


async def test_agents_are_told_of_a_new_authority(tmp_path: Path) -> None:
    authorities = ["first"]
    async with serve(tmp_path, get_ca_bundle=lambda: authorities[-1]) as (objects, backend):
        await backend.apply(JOB, FIRST_PODS)
        authorities.append("second")
        await backend.apply(JOB, [])
        plan = json.loads(objects.stored["configmaps/vit-muster"]["data"]["plan.json"])
    assert plan["collector_ca"] == "second"


async def test_a_pod_that_came_and_went_unseen_is_missed(tmp_path: Path) -> None:
    clock = Clock(get_time())
    async with serve(tmp_path, clock) as (objects, backend):
        await backend.apply(JOB, FIRST_PODS)
        del objects.stored["pods/vit-0-0"]
        assert [node.process.state for node in await observe_nodes(backend)] == [WAITING] * 2
        clock.now += UNCONFIRMED_SECONDS
        assert [node.process.state for node in await observe_nodes(backend)] == [MISSING, WAITING]


async def test_surplus_pods_are_removed(tmp_path: Path) -> None:
    smaller = make_job(nodes=1)
    async with serve(tmp_path) as (objects, backend):
        await backend.apply(JOB, FIRST_PODS)
        await backend.apply(JOB, [CreateNode(0, 1)])
        surplus = (await backend.observe(smaller)).surplus_pods
        assert set(surplus) == {"vit-0-0", "vit-1-0"}
        await backend.apply(smaller, [RemoveSurplusPod(name) for name in surplus])
        assert list_pods(objects) == ["vit-0-1"]


async def test_another_operator_finds_the_pods_and_that_they_are_of_an_earlier_spec(tmp_path: Path) -> None:
    async with serve(tmp_path) as (objects, first), serve(tmp_path) as (_, second):
        await first.apply(JOB, FIRST_PODS)
        second.pods.expect(UID, "team")
        for name in list_pods(objects):
            second.pods.handle_change(Change("ADDED", objects.stored[f"pods/{name}"]))
        facts = await second.observe(JOB)
        assert ([node.process.state for node in facts.nodes], facts.has_outdated_pods) == ([WAITING] * 2, False)
        changed = {generation: make_job(generation, command=["false"]) for generation in (1, 2)}
        assert [(await second.observe(job)).has_outdated_pods for job in changed.values()] == [False, True]


async def test_a_replaced_pod_has_heard_nothing(tmp_path: Path) -> None:
    clock = Clock(get_time())
    async with serve(tmp_path, clock) as (_, backend):
        backend.store.register_job(make_job_shape(JOB, "team"))
        await backend.apply(JOB, FIRST_PODS)
        exit_ = Command(1, UID, 1, CommandKind.EXIT)
        clock.now += 1
        await backend.apply(JOB, [SendCommand((0, 1), exit_)])
        first = (await observe_nodes(backend))[0]
        assert (first.command, first.command_sent_at) == (exit_, clock.now)
        await backend.apply(JOB, [CreateNode(0, 1)])
        assert [node.command for node in await observe_nodes(backend)] == [None, exit_]
        assert backend.store.get_command(UID, 0, None) is None
