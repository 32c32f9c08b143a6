"""A node's facts from its pod, its agent, and the record of earlier actions."""

from dataclasses import replace

import pytest

from muster.backends.kubernetes.backend import round_seconds
from muster.backends.kubernetes.job_state import DELETION_RETRY_SECONDS, MAX_BACKOFF_SECONDS, JobState, PodDeletion
from muster.core.facts import ProcessFacts, ProcessState
from muster.core.failure.problems import LOST_SECONDS
from muster.core.problem import Problem
from muster.diagnose.kubernetes.node_facts import apply_agent_report, build_missing_process, is_caused_by_muster
from muster.objects.kubernetes.observations import is_unreachable
from muster.objects.kubernetes.pods import Condition
from muster_worker.contract.schema import AgentPhase
from unit.core.builders import START, agent
from unit.diagnose.kubernetes.pod_cases import view

WAITING = ProcessFacts(ProcessState.WAITING, name="vit-0-0")
HEARD = replace(agent(0, AgentPhase.READY), last_report_at=START + 0.7)


def test_who_reports_runs() -> None:
    assert apply_agent_report(WAITING, HEARD).state is ProcessState.RUNNING
    assert apply_agent_report(WAITING, None) == WAITING


def test_who_reports_is_past_what_kept_it_from_beginning() -> None:
    missing = Problem("ConfigMissing", "Secret aws doesn't exist in namespace vision")
    assert apply_agent_report(replace(WAITING, problem=missing), HEARD).problem is None
    assert apply_agent_report(replace(WAITING, problem=missing), None).problem == missing
    sidecar = Problem("SidecarFailed", "container proxy failed with exit code 1")
    assert apply_agent_report(replace(WAITING, problem=sidecar), HEARD).problem == sidecar


def test_what_an_earlier_replacement_said_is_the_past() -> None:
    process = replace(WAITING, replacement=1)
    assert apply_agent_report(process, HEARD) == process


@pytest.mark.parametrize(
    ("ended_at", "seen"),
    [
        (START, START + 0.7),  # in the same second, after its last report
        (START + 2, START + 2),
        (START - 30, START + 0.7),  # its machine's clock is behind
    ],
)
def test_a_pod_ends_after_its_agents_termination_message(ended_at: float, seen: float) -> None:
    process = ProcessFacts(ProcessState.EXITED, ended_at=ended_at)
    assert apply_agent_report(process, HEARD, START + 9).ended_at == pytest.approx(seen)


def test_what_is_heard_after_a_pods_end_was_on_its_way() -> None:
    process = ProcessFacts(ProcessState.EXITED, ended_at=START - 1)
    assert apply_agent_report(process, HEARD, START + 0.2).ended_at == pytest.approx(START + 0.2)


def test_a_missing_pod_was_deleted_or_has_ended() -> None:
    lost = build_missing_process(WAITING, 3)
    assert (lost.state, lost.replacement) == (ProcessState.MISSING, 3)
    assert lost.problem == Problem(
        "PodDeleted", "pod vit-0-0, its labels or its owner reference was removed, and not by muster"
    )
    evicted = Problem("Evicted", "node-1 evicted it")
    assert build_missing_process(replace(WAITING, problem=evicted), 3).problem == evicted


def test_a_refusal_is_of_one_generation_of_the_resource() -> None:
    job_state, problem = JobState(), Problem("InvalidObject", "spec.x: unknown field")
    job_state.record_refusal(4, problem)
    assert (job_state.find_refusal(4), job_state.find_refusal(5)) == (problem, None)


def test_the_longer_something_is_refused_the_rarer_it_is_asked_again() -> None:
    job_state, held = JobState(), {0: Problem("QuotaExceeded", "quota team is exceeded")}
    pauses = []
    for _ in range(8):
        job_state.record_problems(held, 100.0)
        pauses.append(job_state.backoff_until - 100.0)
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (1.0, MAX_BACKOFF_SECONDS)
    job_state.record_problems({}, 200.0)
    assert (job_state.pod_problems, job_state.backoff_until) == ({}, 0.0)
    job_state.record_problems(held, 300.0)
    assert job_state.backoff_until == 301.0


def test_a_deletion_is_asked_for_again_when_it_is_more_urgent_or_takes_long() -> None:
    job_state, pod = JobState(), view("running")
    assert not job_state.is_deletion_pending(pod, 10, 100.0)
    job_state.deletions[pod.uid] = PodDeletion(100.0, 10)
    assert job_state.is_deletion_pending(pod, 10, 101.0)
    assert job_state.is_deletion_pending(pod, 30, 101.0)
    assert not job_state.is_deletion_pending(pod, 1, 101.0)
    assert not job_state.is_deletion_pending(pod, 10, 100.0 + DELETION_RETRY_SECONDS)


def test_a_name_is_free_when_its_pod_is_only_left_behind() -> None:
    job_state = JobState()
    leaving = replace(view("running"), deletion_requested_at=START, deletion_grace_seconds=30)
    assert not job_state.is_leftover(view("running"), START + 1e6)
    assert not job_state.is_leftover(leaving, START + 500)
    assert not job_state.is_leftover(leaving, START + 500 + 30 + LOST_SECONDS - 1)
    assert job_state.is_leftover(leaving, START + 500 + 30 + LOST_SECONDS)


def test_a_machine_that_the_cluster_gave_up_is_not_waited_for_beyond_the_grace() -> None:
    job_state = JobState()
    conditions = (Condition("Ready", is_true=False), Condition("ContainersReady", is_true=True))
    leaving = replace(view("running"), deletion_requested_at=START, deletion_grace_seconds=30, conditions=conditions)
    assert not job_state.is_leftover(leaving, START)
    assert not job_state.is_leftover(leaving, START + 29)
    assert job_state.is_leftover(leaving, START + 30)


READY = Condition("Ready", is_true=False)
CONTAINERS_READY = Condition("ContainersReady", is_true=True)


@pytest.mark.parametrize(
    ("conditions", "is_it"),
    [
        ((READY, CONTAINERS_READY), True),
        ((replace(READY, is_true=True), CONTAINERS_READY), False),
        # the kubelet's own report
        ((replace(READY, reason="ContainersNotReady"), replace(CONTAINERS_READY, is_true=False)), False),
        ((replace(READY, reason="ReadinessGatesNotReady"), CONTAINERS_READY), False),
        ((READY,), False),
        ((Condition("DisruptionTarget", is_true=True, reason="DeletionByTaintManager"),), True),
        ((Condition("DisruptionTarget", is_true=True, reason="DeletionByPodGC"),), True),
        ((Condition("DisruptionTarget", is_true=True, reason="EvictionByEvictionAPI"),), False),
        ((), False),
    ],
)
def test_a_pod_tells_that_its_machine_does_not_answer(conditions: tuple[Condition, ...], *, is_it: bool) -> None:
    assert is_unreachable(replace(view("running"), conditions=conditions)) is is_it


@pytest.mark.parametrize(("grace", "seconds"), [(0.0, 1), (0.2, 1), (2.0, 2), (2.5, 3)])
def test_no_grace_is_ever_nought(grace: float, seconds: int) -> None:
    # with 0 the API server removes the pod while its processes still run
    assert round_seconds(grace) == seconds


@pytest.mark.parametrize(
    ("reason", "ended_at", "is_own"),
    [
        ("PodDeleted", None, True),
        ("OOMKilled", None, False),
        ("OOMKilled", 98.0, False),
        # killed with SIGKILL at the end of its grace period; kubelets drop the fraction of a second
        ("OOMKilled", 99.0, True),
        ("OOMKilled", 110.0, True),
    ],
)
def test_what_muster_itself_ended_is_no_problem(reason: str, ended_at: float | None, *, is_own: bool) -> None:
    assert is_caused_by_muster(Problem(reason, "..."), ended_at, removed_at=99.5) is is_own
