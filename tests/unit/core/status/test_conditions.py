"""The conditions in each state of a job."""

from dataclasses import replace

import pytest

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Condition, Status
from muster.api.timestamps import format_timestamp
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.problem import Problem
from muster.core.status.ended_status import build_ended_status
from muster.core.status.events import list_new_events
from muster.core.status.unreconciled.refused_status import make_refused_status
from unit.core.builders import (
    START,
    compute_status,
    exited_process,
    exited_rank,
    facts,
    finished_node,
    job,
    missing_node,
    node,
    rank,
    ready_node,
    running_node,
    with_spec,
)

IMAGE_PROBLEM = Problem("ImageNotFound", "image nope:1 doesn't exist: correct spec.image")
NO_ROOM = Problem("Unschedulable", "none of 5 nodes has room")


def waiting_node(number: int, problem: Problem | None = None, *, is_scheduled: bool = True) -> NodeFacts:
    at = START if is_scheduled else None
    process = ProcessFacts(ProcessState.WAITING, problem=problem, name=f"digits-{number}-0", scheduled_at=at)
    return node(number, process=process)


def find_condition(status: Status, kind: str) -> Condition:
    return next(entry for entry in status.conditions if entry.type == kind)


def status_and_reason(status: Status, kind: str) -> tuple[str, str]:
    return (find_condition(status, kind).status, find_condition(status, kind).reason)


CASES = (
    (facts(missing_node(0), missing_node(1)), ("False", "NodesNotPlaced"), ("False", "Waiting"), "Pending"),
    (
        facts(waiting_node(0, NO_ROOM, is_scheduled=False), ready_node(1)),
        ("False", "Unschedulable"),
        ("False", "Waiting"),
        "Pending",
    ),
    (facts(waiting_node(0), ready_node(1)), ("True", "AllNodesPlaced"), ("False", "Waiting"), "Starting"),
    (
        facts(waiting_node(0, IMAGE_PROBLEM), ready_node(1)),
        ("True", "AllNodesPlaced"),
        ("True", "ImageNotFound"),
        "Starting",
    ),
    (
        facts(running_node(0, rank(0)), running_node(1, rank(2))),
        ("True", "AllNodesPlaced"),
        ("False", "Waiting"),
        "Running",
    ),
    (
        facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3))),
        ("True", "AllNodesPlaced"),
        ("False", "NoProblemKnown"),
        "Running",
    ),
    (
        facts(running_node(0, exited_rank(0, 3, exit_code=1)), running_node(1, rank(2))),
        ("True", "AllNodesPlaced"),
        ("False", "Stopping"),
        "Stopping",
    ),
    (
        facts(node(0, process=exited_process(3, exit_code=1)), node(1, process=exited_process(3, exit_code=1))),
        ("True", "AllNodesPlaced"),
        ("True", "AgentLost"),
        "Failed",
    ),
)


@pytest.mark.parametrize(("job_facts", "scheduled", "stalled", "phase"), CASES)
def test_the_conditions_scheduled_and_stalled(
    job_facts: JobFacts, scheduled: tuple[str, str], stalled: tuple[str, str], phase: str
) -> None:
    status = compute_status(job(), Status(), job_facts, START + 10)

    assert (status_and_reason(status, "Scheduled"), status_and_reason(status, "Stalled"), status.phase) == (
        scheduled,
        stalled,
        phase,
    )


@pytest.mark.parametrize(
    ("job_facts", "message"),
    [
        (
            facts(waiting_node(0, IMAGE_PROBLEM), waiting_node(1, IMAGE_PROBLEM), waiting_node(2, IMAGE_PROBLEM)),
            (
                "0 of 3 nodes are ready; 3 nodes (digits-0, digits-1, digits-2): "
                "image nope:1 doesn't exist: correct spec.image"
            ),
        ),
        (
            facts(ready_node(0), waiting_node(1, NO_ROOM, is_scheduled=False), waiting_node(2, IMAGE_PROBLEM), node(3)),
            (
                "1 of 4 nodes is ready; digits-2: image nope:1 doesn't exist: correct spec.image; "
                "digits-1: none of 5 nodes has room; digits-3 has not reported"
            ),
        ),
        (
            facts(
                ready_node(0),
                waiting_node(
                    1,
                    Problem("Unschedulable", "none of 5 nodes has room: 5 lack gpu", "insufficient gpu"),
                    is_scheduled=False,
                ),
                waiting_node(
                    2,
                    Problem(
                        "Unschedulable", "none of 6 nodes has room: 4 lack gpu, 2 are cordoned", "insufficient gpu"
                    ),
                    is_scheduled=False,
                ),
                waiting_node(
                    3,
                    Problem("QuotaExceeded", "quota team is exceeded", "quota team has no room for pods"),
                    is_scheduled=False,
                ),
            ),
            (
                "1 of 4 nodes is ready; 2 of 4 nodes: insufficient gpu (digits-1: none of 5 nodes has room: 5 lack "
                "gpu); 1 of 4 nodes: quota team has no room for pods (digits-3: quota team is exceeded)"
            ),
        ),
        (
            facts(ready_node(0), waiting_node(1, is_scheduled=False), waiting_node(2)),
            "1 of 3 nodes is ready: digits-1 waits to be scheduled; digits-2 is starting",
        ),
        (
            facts(*(waiting_node(number, replace(NO_ROOM, message=f"{number} nodes are full")) for number in range(6))),
            "0 of 6 nodes are ready; 6 nodes (digits-0, digits-1, digits-2 and 3 more): 0 nodes are full",
        ),
    ],
)
def test_the_message_groups_equal_problems_of_nodes(job_facts: JobFacts, message: str) -> None:
    assert compute_status(job(len(job_facts.nodes)), Status(), job_facts, START + 10).message == message


def test_a_refused_pod_makes_accepted_false() -> None:
    refusal = Problem("InvalidObject", "spec.template.spec.hostname: found x_y; it is no DNS label")

    status = compute_status(job(), Status(), replace(facts(missing_node(0), missing_node(1)), refusal=refusal), START)

    assert status_and_reason(status, "Accepted") == ("False", "InvalidObject")
    assert status_and_reason(status, "Stalled") == ("True", "InvalidObject")
    assert (status.phase, status_and_reason(status, "Failed")[0]) == ("Refused", "False")
    # The phase is Refused only while the pods are refused.
    assert compute_status(job(), status, facts(missing_node(0), missing_node(1)), START + 1).phase == "Pending"
    assert status.message == refusal.message == find_condition(status, "Accepted").message


@pytest.mark.parametrize(
    ("job_facts", "state"),
    [
        (facts(missing_node(0), missing_node(1)), ("True", "Pending")),
        (facts(running_node(0, rank(0)), running_node(1, rank(2))), ("True", "Running")),
        (facts(running_node(0, exited_rank(0, 1, exit_code=1)), running_node(1, rank(2))), ("True", "Stopping")),
        (facts(finished_node(0), finished_node(1)), ("False", "Failed")),
    ],
)
def test_a_job_is_reconciling_until_it_has_a_result(job_facts: JobFacts, state: tuple[str, str]) -> None:
    status = compute_status(job(procs=1), Status(), job_facts, START + 9)

    assert status_and_reason(status, "Reconciling") == state
    # kstatus takes the first of the two conditions that is True.
    types = [entry.type for entry in status.conditions]
    assert types.index("Reconciling") < types.index("Stalled")


def test_the_status_of_an_invalid_resource_lists_its_problems() -> None:
    problems = tuple(FieldProblem(f"spec.x{number}", "found 0; allowed are 1 to 9") for number in range(5))
    before = compute_status(job(), Status(), facts(missing_node(0), missing_node(1)), START)

    status = make_refused_status(before, InvalidResource(problems), 7, START + 9)

    assert status.message == (
        "muster refuses the resource: spec.x0: found 0; allowed are 1 to 9; spec.x1: found 0; allowed are 1 to 9; "
        "spec.x2: found 0; allowed are 1 to 9; and 2 more"
    )
    assert (status_and_reason(status, "Accepted"), status_and_reason(status, "Stalled")) == (
        ("False", "Invalid"),
        ("True", "Invalid"),
    )
    assert (status.phase, status.final_condition, status.was_started) == ("Refused", None, False)
    assert [entry.type for entry in status.conditions][:1] == ["Accepted"]
    assert len(status.conditions) == len(before.conditions)
    assert (status.observed_generation, find_condition(status, "Accepted").observed_generation) == (7, 7)
    assert make_refused_status(status, InvalidResource(problems), 7, START + 99) == status
    corrected = compute_status(job(), status, facts(missing_node(0), missing_node(1)), START + 100)
    assert (corrected.phase, status_and_reason(corrected, "Accepted")) == ("Pending", ("True", "Valid"))


def test_a_running_job_keeps_its_phase_if_a_change_is_refused() -> None:
    before = compute_status(job(), Status(), facts(running_node(0, rank(0)), running_node(1, rank(2))), START + 9)

    status = make_refused_status(before, InvalidResource((FieldProblem("spec.x", "no"),)), 7, START + 10)

    assert (status.phase, status_and_reason(status, "Accepted")) == (before.phase, ("False", "Invalid"))
    # The job runs, and a GitOps tool still has to show that the change failed.
    assert status_and_reason(before, "Reconciling") == ("True", "Running")
    assert status_and_reason(status, "Reconciling") == ("False", "Invalid")


def test_a_resumed_job_that_is_refused_counts_as_not_started() -> None:
    resumed = Condition(
        type="Suspended", status="False", reason="Resumed", last_transition_time=format_timestamp(START)
    )
    before = Status(phase="Pending", attempt=2, conditions=(resumed,))

    assert not make_refused_status(before, InvalidResource((FieldProblem("spec.x", "no"),)), 7, START + 10).was_started


def with_generation(number: int, a_job: Job) -> Job:
    return a_job.model_copy(update={"metadata": a_job.metadata.model_copy(update={"generation": number})})


@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_change_of_an_ended_job_changes_only_accepted(exit_code: int) -> None:
    current = facts(finished_node(0, exited_rank(0, 9, exit_code=exit_code)))
    end_status = compute_status(with_generation(3, job(1, 1)), Status(), current, START + 10)
    invalid = InvalidResource((FieldProblem("spec.x", "no"),))
    changed = with_generation(4, job(1, 1))
    suspended = with_spec(changed, suspend=True)

    assert compute_status(with_generation(3, job(1, 1)), end_status, current, START + 20) == end_status
    for status in (
        make_refused_status(end_status, invalid, 4, START + 20),
        compute_status(changed, end_status, current, START + 20),
        compute_status(suspended, end_status, facts(missing_node(0)), START + 20),
    ):
        accepted = find_condition(status, "Accepted")
        assert (accepted.status, accepted.reason, accepted.observed_generation) == ("False", "JobIsOver", 4)
        assert accepted.message == (
            "muster does not run the changed spec: the job has ended, and its spec can no longer change: "
            "delete the job, or use another name"
        )
        others = tuple(entry for entry in end_status.conditions if entry.type != "Accepted")
        assert status == end_status.model_copy(update={"observed_generation": 4, "conditions": (accepted, *others)})
        assert [event.reason for event in list_new_events(end_status, status)] == ["Refused"]
        # muster reports it once, also for later changes. A later operator decides the same.
        later = compute_status(with_generation(5, job(1, 1)), status, current, START + 30)
        assert (list_new_events(status, later), later.observed_generation) == ((), 5)
        assert later.final_condition == end_status.final_condition


def test_an_end_without_a_generation_does_not_refuse_a_later_spec() -> None:
    end = Condition(type="Complete", status="True", reason="X", last_transition_time=format_timestamp(START))
    status = build_ended_status(Status(phase="Succeeded", conditions=(end,)), 4, START + 20)
    assert status.conditions == (end,)


def test_the_status_has_the_start_before_the_command_is_sent() -> None:
    status = compute_status(job(), Status(), facts(ready_node(0), ready_node(1)), START)

    assert (status.attempt, status.start_time) == (1, "2025-11-21T04:05:05Z")


def test_details_name_the_pod_and_its_machine() -> None:
    current = running_node(0, exited_rank(0, 3, exit_code=1))
    current = replace(current, process=replace(current.process, name="digits-0-0", kube_node="worker-1"))

    status = compute_status(job(1, 1), Status(), facts(current), START + 4)

    assert status.ranks is not None
    assert [(entry.pod, entry.node_name) for entry in status.ranks.details] == [("digits-0-0", "worker-1")]


@pytest.mark.parametrize(("is_terminating", "stalled"), [(True, "Waiting"), (False, "Evicted")])
def test_an_eviction_stalls_the_job_only_after_the_pod_has_terminated(stalled: str, *, is_terminating: bool) -> None:
    node_facts = running_node(0, rank(0))
    evicted = Problem("Evicted", "a user evicted it")
    evicted_node = replace(
        node_facts, process=replace(node_facts.process, problem=evicted, is_terminating=is_terminating)
    )
    status = compute_status(job(), Status(), facts(evicted_node, running_node(1, rank(2))), START + 5)
    assert find_condition(status, "Stalled").reason == stalled
