"""The sums over current jobs."""

from muster.api.status.status import Condition, RankStatus, StateRange, Status
from muster.core.metrics.totals import MAX_RANKS, Totals

HERE = ("team", "Kubernetes")


def status(phase: str, **counts: int) -> Status:
    ranges = tuple(StateRange(state=state, count=count, ranks="") for state, count in counts.items())
    return Status(phase=phase, ranks=RankStatus(world=4, running=4, ready="4/4", by_state=ranges))


def test_jobs_and_ranks_are_summed_up() -> None:
    totals = Totals()
    totals.add(*HERE, status("Running", Running=4))
    totals.add(*HERE, status("Running", Running=2, Failed=2))
    totals.add("other", "SageMaker", Status(phase="Queued"))
    totals.add_waiting("other", "Unknown")
    assert totals.jobs == {
        (*HERE, "Running"): 2,
        ("other", "SageMaker", "Queued"): 1,
        ("other", "Unknown", "Refused"): 1,
    }
    assert totals.ranks == {(*HERE, "Running"): 6, (*HERE, "Failed"): 2}


def test_the_ranks_of_a_job_that_has_ended_do_not_count() -> None:
    totals = Totals()
    complete = Condition(type="Complete", status="True", reason="AllRanksSucceeded", last_transition_time="")
    totals.add(*HERE, status("Succeeded", Succeeded=4).model_copy(update={"conditions": (complete,)}))
    assert (totals.jobs, totals.ranks) == ({(*HERE, "Succeeded"): 1}, {})


def test_a_forged_status_adds_no_label_values_and_no_huge_numbers() -> None:
    totals = Totals()
    for number in range(100):
        totals.add(*HERE, status(f"Phase{number}", **{f"State{number}": 10**400, "Running": -5}))
    many = {f"State{number}": 1 for number in range(1000)}
    totals.add(*HERE, status("Running", **many))
    assert totals.jobs == {(*HERE, "Other"): 100, (*HERE, "Running"): 1}
    assert totals.ranks == {(*HERE, "Other"): 100 * MAX_RANKS + 7, (*HERE, "Running"): 0}
