"""Which objects of an ended job muster deletes, and when."""

from dataclasses import replace

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Condition, Status
from muster.core.actions import Action, DeleteResource, RemoveNode
from muster.core.decide import decide, find_requeue_time
from muster.core.facts import JobFacts, ProcessFacts, ProcessState
from muster.core.judge import judge
from unit.core.builders import T0, exited_process, facts, job, missing_node, node, running_process, with_spec

SUCCEEDED = Status(
    phase="Succeeded",
    conditions=(Condition(type="Complete", status="True", reason="X", last_transition_time="2025-11-21T04:05:00Z"),),
)
SUCCEEDED_PROCESS = exited_process(9, exit_code=0)
REMAINING = facts(
    node(0, process=SUCCEEDED_PROCESS),
    node(1, process=replace(SUCCEEDED_PROCESS, has_running_sidecars=True)),
    node(2, process=ProcessFacts(ProcessState.WAITING)),
    missing_node(3),
)


def job_with_policy(policy: str, ttl_seconds: int | None = None) -> Job:
    plain = job(4)
    fields = {"clean_pod_policy": policy, "ttl_seconds_after_finished": ttl_seconds}
    return with_spec(plain, **fields)


def decide_actions(a_job: Job, previous: Status, current: JobFacts, now: float) -> list[Action]:
    return list(decide(a_job, current, judge(a_job, previous, current, now), now, 1))


@pytest.mark.parametrize(
    ("policy", "removed"),
    [
        ("Running", {1: "the job has ended", 2: "the job has ended"}),
        ("All", {0: "cleanPodPolicy is All", 1: "cleanPodPolicy is All", 2: "the job has ended"}),
        ("None", {}),
    ],
)
def test_the_policy_decides_which_pods_of_an_ended_job_are_deleted(policy: str, removed: dict[int, str]) -> None:
    expected = [RemoveNode(number, 10.0, reason) for number, reason in removed.items()]

    assert decide_actions(job_with_policy(policy), SUCCEEDED, REMAINING, T0 + 10) == expected


def test_the_resource_is_deleted_after_ttl_seconds_after_finished() -> None:
    a_job = job_with_policy("None", 60)

    outcome = judge(a_job, SUCCEEDED, REMAINING, T0 + 59)
    assert list(decide(a_job, REMAINING, outcome, T0 + 59, 1)) == []
    assert find_requeue_time(a_job, REMAINING, outcome, T0 + 59) == T0 + 60
    assert decide_actions(a_job, SUCCEEDED, REMAINING, T0 + 60) == [DeleteResource()]
    assert not any(
        isinstance(action, DeleteResource)
        for action in decide_actions(job_with_policy("All"), SUCCEEDED, REMAINING, T0 + 10**8)
    )


def test_nothing_is_deleted_twice() -> None:
    terminating = replace(SUCCEEDED_PROCESS, is_terminating=True)
    current = facts(*(node(number, process=terminating) for number in range(4)))

    assert decide_actions(job_with_policy("All"), SUCCEEDED, current, T0 + 10) == []


def test_a_pod_is_not_deleted_before_its_agent_has_exited() -> None:
    current = facts(*(node(number, process=running_process()) for number in range(4)))

    assert not any(
        isinstance(action, RemoveNode)
        for action in decide_actions(job_with_policy("All", 0), SUCCEEDED, current, T0 + 10)
    )
