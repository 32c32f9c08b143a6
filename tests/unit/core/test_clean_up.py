"""The objects of an ended job that are deleted, and when."""

from dataclasses import replace

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Condition, Status
from muster.core.actions import Action, DeleteResource, RemoveNode
from muster.core.decide import decide, find_requeue_time
from muster.core.facts import JobFacts, ProcessFacts, ProcessState
from muster.core.judge import judge
from unit.core.builders import T0, exited_process, facts, job, missing_node, node, running_process

OVER = Status(
    phase="Succeeded",
    conditions=(Condition(type="Complete", status="True", reason="X", last_transition_time="2025-11-21T04:05:00Z"),),
)
GOOD = exited_process(9, exit_code=0)
LEFT = facts(
    node(0, process=GOOD),
    node(1, process=replace(GOOD, has_running_sidecars=True)),
    node(2, process=ProcessFacts(ProcessState.WAITING)),
    missing_node(3),
)


def asked(policy: str, after: int | None = None) -> Job:
    plain = job(4)
    fields = {"clean_pod_policy": policy, "ttl_seconds_after_finished": after}
    return plain.model_copy(update={"spec": plain.spec.model_copy(update=fields)})


def actions_of(a_job: Job, previous: Status, current: JobFacts, now: float) -> list[Action]:
    return list(decide(a_job, current, judge(a_job, previous, current, now), now, 1))


@pytest.mark.parametrize(
    ("pods", "removed"),
    [
        ("Running", {1: "the job has ended", 2: "the job has ended"}),
        ("All", {0: "cleanPodPolicy is All", 1: "cleanPodPolicy is All", 2: "the job has ended"}),
        ("None", {}),
    ],
)
def test_which_pods_go_when_the_job_is_over(pods: str, removed: dict[int, str]) -> None:
    expected = [RemoveNode(number, 10.0, why) for number, why in removed.items()]

    assert actions_of(asked(pods), OVER, LEFT, T0 + 10) == expected


def test_the_resource_is_deleted_after_the_time_that_was_asked_for() -> None:
    a_job = asked("None", 60)

    early = judge(a_job, OVER, LEFT, T0 + 59)
    assert list(decide(a_job, LEFT, early, T0 + 59, 1)) == []
    assert find_requeue_time(a_job, LEFT, early, T0 + 59) == T0 + 60
    assert actions_of(a_job, OVER, LEFT, T0 + 60) == [DeleteResource()]
    assert not any(isinstance(action, DeleteResource) for action in actions_of(asked("All"), OVER, LEFT, T0 + 10**8))


def test_nothing_is_deleted_twice() -> None:
    leaving = replace(GOOD, is_terminating=True)
    current = facts(*(node(number, process=leaving) for number in range(4)))

    assert actions_of(asked("All"), OVER, current, T0 + 10) == []


def test_an_agent_that_runs_leaves_before_its_pod_goes() -> None:
    current = facts(*(node(number, process=running_process()) for number in range(4)))

    assert not any(isinstance(action, RemoveNode) for action in actions_of(asked("All", 0), OVER, current, T0 + 10))
