"""The sums over all jobs for Prometheus."""

from muster.api.status.rules import MAX_RANKS
from muster.api.status.status import Condition, RankStatus, StateRange, Status
from muster.core.metrics.totals import Totals

TEAM = ("team", "Kubernetes")


def status(phase: str, **counts: int) -> Status:
    ranges = tuple(StateRange(state=state, count=count, ranks="") for state, count in counts.items())
    return Status(phase=phase, ranks=RankStatus(world=4, running=4, ready="4/4", by_state=ranges))


def test_jobs_are_counted_by_phase_and_ranks_by_state() -> None:
    totals = Totals()
    totals.add_job(*TEAM, status("Running", Running=4))
    totals.add_job(*TEAM, status("Running", Running=2, Failed=2))
    totals.add_job("other", "SageMaker", Status(phase="Queued"))
    totals.add_job_waiting_for_memory("other", "Unknown")
    assert totals.jobs == {
        (*TEAM, "Running"): 2,
        ("other", "SageMaker", "Queued"): 1,
        ("other", "Unknown", "Refused"): 1,
    }
    assert totals.ranks == {(*TEAM, "Running"): 6, (*TEAM, "Failed"): 2}


def test_the_ranks_of_a_job_that_has_ended_do_not_count() -> None:
    totals = Totals()
    complete = Condition(type="Complete", status="True", reason="AllRanksSucceeded", last_transition_time="")
    totals.add_job(*TEAM, status("Succeeded", Succeeded=4).model_copy(update={"conditions": (complete,)}))
    assert (totals.jobs, totals.ranks) == ({(*TEAM, "Succeeded"): 1}, {})


def test_a_forged_status_adds_no_label_values_and_no_huge_numbers() -> None:
    totals = Totals()
    for number in range(100):
        totals.add_job(*TEAM, status(f"Phase{number}", **{f"State{number}": 10**400, "Running": -5}))
    many_states = {f"State{number}": 1 for number in range(1000)}
    totals.add_job(*TEAM, status("Running", **many_states))
    assert totals.jobs == {(*TEAM, "Other"): 100, (*TEAM, "Running"): 1}
    assert totals.ranks == {(*TEAM, "Other"): 100 * MAX_RANKS + 7, (*TEAM, "Running"): 0}
