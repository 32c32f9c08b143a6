from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.facts import AgentFacts
from muster.core.reports.merge import merge_report
from muster_worker.contract.schema import AgentPhase, LauncherEnd, MetricValue, RankReport, RankState, Report
from muster_worker.contract.trainer_status import TrainerStatus
from unit.core.reports.rank_reports import T0, exited_rank, report, running_rank

ArrivedReport = tuple[Report, float]

ages = st.sampled_from([0.0, 0.25, 1.0, 3.5])
optional_ages = st.none() | ages


@st.composite
def ranks(draw: st.DrawFn, rank: int) -> RankReport:
    state = draw(st.sampled_from(RankState.ALL))
    ended = state == RankState.EXITED
    signal = draw(st.sampled_from([None, 9])) if ended else None
    return RankReport(
        rank=rank,
        local_rank=rank,
        state=state,
        exit_code=draw(st.sampled_from([0, 1])) if ended and signal is None else None,
        signal=signal,
        started_age=draw(optional_ages),
        ended_age=draw(ages) if ended else None,
        stopped=draw(st.booleans()) if ended else False,
        last_lines=draw(st.sampled_from([(), ("one",), ("one", "two")])),
        step=draw(st.sampled_from([None, 0, 1, 2])),
        step_age=draw(optional_ages),
        phase=draw(st.sampled_from([None, "eval"])),
        phase_ended_age=draw(optional_ages),
        first_step_age=draw(optional_ages),
        first_script_step=draw(st.one_of(st.none(), st.integers(0, 3))),
        trainer_status=draw(st.none() | st.builds(TrainerStatus, ages, st.sampled_from([None, 10, 20]))),
    )


@st.composite
def reports(draw: st.DrawFn) -> Report:
    return Report(
        job_uid="uid",
        node=0,
        replacement=draw(st.integers(0, 1)),
        attempt=draw(st.integers(0, 1)),
        sequence=draw(st.integers(0, 2)),
        phase=draw(st.sampled_from(AgentPhase.ALL)),
        ranks=tuple(draw(ranks(rank)) for rank in range(2) if draw(st.booleans())),
        metrics=draw(st.sampled_from([(), (MetricValue("loss", 0.5, 0, 1.0),), (MetricValue("loss", 0.5, 0, 2.0),)])),
        terminated_age=draw(optional_ages),
        launcher=draw(st.none() | st.builds(LauncherEnd, st.just("torchrun"), ages, st.sampled_from([0, 1]))),
    )


# Forged and repeated reports are included: one sequence number may have two contents, and an exited rank may run again.
arrivals = st.lists(st.tuples(reports(), st.sampled_from([T0, T0 + 1.0, T0 + 2.5])), min_size=1, max_size=7)


def merge_all(arrived: list[ArrivedReport]) -> AgentFacts:
    agent: AgentFacts | None = None
    for each_report, at in arrived:
        agent = merge_report(agent, each_report, at)
    assert agent is not None
    return agent


@settings(deadline=None)
@given(arrivals, st.data())
def test_the_order_and_the_repetition_of_reports_do_not_change_the_facts(
    arrived: list[ArrivedReport], data: st.DataObject
) -> None:
    repeated = data.draw(st.lists(st.sampled_from(arrived), max_size=4))
    shuffled = data.draw(st.permutations(arrived + repeated))

    assert merge_all(shuffled) == merge_all(arrived)


@settings(deadline=None)
@given(arrivals)
def test_a_rank_that_exited_in_the_newest_attempt_stays_exited(arrived: list[ArrivedReport]) -> None:
    current = merge_all(arrived)
    newest = (current.report.replacement, current.report.attempt)
    exited = {
        rank.rank
        for arrived, _ in arrived
        if (arrived.replacement, arrived.attempt) == newest
        for rank in arrived.ranks
        if rank.state == RankState.EXITED
    }

    assert {rank.report.rank for rank in current.ranks if rank.report.state == RankState.EXITED} == exited


@settings(deadline=None)
@given(arrivals)
def test_the_newest_report_decides_and_the_last_report_time_is_that_of_the_current_pod(
    arrived: list[ArrivedReport],
) -> None:
    current = merge_all(arrived)

    current_replacement = max(report.replacement for report, _ in arrived)
    assert current.last_report_at == max(at for report, at in arrived if report.replacement == current_replacement)
    order = max((report.replacement, report.attempt, report.sequence) for report, _ in arrived)
    assert (current.report.replacement, current.report.attempt, current.report.sequence) == order


def merge_reports(*arrived: ArrivedReport) -> AgentFacts:
    return merge_all(list(arrived))


def test_ages_become_times() -> None:
    launcher = LauncherEnd("torchrun", 0.5, 1)
    metric = MetricValue("loss", 0.1, 0, 2.0)
    current = merge_reports((report(1, exited_rank(0, step=7, step_age=3.0), metrics=(metric,), launcher=launcher), T0))

    rank = current.ranks[0]
    assert (rank.started_at, rank.ended_at, rank.highest_step_at) == (T0 - 5, T0 - 1, T0 - 3)
    assert current.metrics[0].at == T0 - 2
    assert current.launcher is not None
    assert current.launcher.ended_at == T0 - 0.5


def test_a_late_report_does_not_change_the_time_of_an_end() -> None:
    early, late = report(1, exited_rank(0, ended_age=0.1)), report(2, exited_rank(0, ended_age=0.2))

    current = merge_reports((early, T0), (late, T0 + 9.0))

    assert current.ranks[0].ended_at == T0 - 0.1


def test_the_step_never_decreases_and_keeps_its_time() -> None:
    first, same, lower = (
        report(1, running_rank(0, step=5, step_age=1.0)),
        report(2, running_rank(0, step=5, step_age=3.0)),
        report(3, running_rank(0, step=4, step_age=0.0)),
    )

    current = merge_reports((first, T0), (same, T0 + 1), (lower, T0 + 2)).ranks[0]

    assert (current.report.step, current.highest_step_at) == (5, T0 - 2)
    # The rank is active: a script may report lower steps after higher ones.
    assert current.last_step_at == T0 + 2


def test_the_newest_report_has_the_last_activity_of_a_rank() -> None:
    first, second = report(1, running_rank(0, step=5, step_age=1.0)), report(2, running_rank(0, step=5, step_age=4.0))
    for arrived in (((first, T0), (second, T0 + 3)), ((second, T0 + 3), (first, T0 + 90))):
        assert merge_reports(*arrived).ranks[0].last_step_at == T0 - 1
    assert merge_reports((first, T0), (report(2, running_rank(0)), T0 + 1)).ranks[0].last_step_at is None


def test_a_step_of_the_script_replaces_a_higher_count_of_optimizer_steps() -> None:
    counted = report(1, running_rank(0, step=1000, step_age=1.0, first_step_age=500.0))
    reported = report(2, running_rank(0, step=3, step_age=0.5, first_step_age=501.5, first_script_step=3))

    current = merge_reports((reported, T0 + 1), (counted, T0)).ranks[0]

    assert (current.report.step, current.report.first_script_step, current.highest_step_at) == (3, 3, T0 + 0.5)
    assert current.first_step_at == T0 - 500.5


def test_last_lines_that_arrive_after_the_end_are_stored() -> None:
    current = merge_reports((report(1, exited_rank(0)), T0), (report(2, exited_rank(0, last_lines=("boom",))), T0 + 1))

    assert current.ranks[0].report.last_lines == ("boom",)
    assert current.ranks[0].ended_at == T0 - 1


def test_a_new_attempt_drops_the_facts_of_the_old_one() -> None:
    old = report(9, exited_rank(0, signal=9), launcher=LauncherEnd("torchrun", 0.0, 1))
    new = report(10, running_rank(0), attempt=2)

    current = merge_reports((new, T0), (old, T0 + 3))

    assert [rank.report.state for rank in current.ranks] == [RankState.RUNNING]
    assert current.launcher is None
    assert current.last_report_at == T0 + 3


def test_merge_does_not_change_its_arguments() -> None:
    current = merge_reports((report(1, running_rank(0)), T0))
    before = repr(current)

    reduce(lambda facts, number: merge_report(facts, report(number, exited_rank(0)), T0), range(2, 5), current)

    assert repr(current) == before
