from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.reports.check import ImplausibleReport, check_report
from muster_worker.contract.collectives import GroupCollective
from muster_worker.contract.network import Link, NetworkFigures
from muster_worker.contract.schema import AgentProblem, LauncherEnd, MetricValue, Report
from muster_worker.contract.trainer_status import TrainerStatus
from support.rows import check_rows
from unit.core.reports.rank_reports import SHAPE, T0, exited_rank, report, running_rank

VALID_REPORTS = {
    "ready": report(0, phase="Ready", attempt=0, address="10.0.0.5", port=29500, interface="eth0"),
    "links": report(1, links=(Link("eth0", "10.0.0.5/16", 10_000), Link("ib0", "fd00::5/64", 0, rdma=True))),
    "figures": report(1, check_port=4711, figures=NetworkFigures(0.0, None, 1e9, "p" * 256)),
    "loopback": report(1, address="127.9.0.1", port=1),
    "IPv6": report(1, address="fd00::1", port=65535),
    "running": report(1, running_rank(0, pid=1, step=0, step_age=0.0, rss_bytes=0), running_rank(1)),
    "before the start": report(1, running_rank(0, state="Starting", started_age=None)),
    "exited": report(1, exited_rank(0, exit_code=255), exited_rank(1, signal=9)),
    "lost": report(1, exited_rank(0, exit_code=None, reason="WrapperLost")),
    "metrics": report(1, metrics=(MetricValue("loss", -1e300, 1, 0.0),)),
    "launcher": report(1, launcher=LauncherEnd("torchrun", 0.0, 1, last_lines=("x" * 512,) * 8)),
    "as old as the job": report(1, exited_rank(0, ended_age=100.0, started_age=100.0)),
}

INVALID_REPORTS = {
    "node": report(1, node=3),
    "node: the job has nodes 0 to 2": report(1, node=-1),
    "replacement": report(1, replacement=-1),
    "attempt": report(1, attempt=-1),
    "sequence": report(-1),
    "dropped_lines": report(1, dropped_lines=-1),
    "phase": report(1, phase="Dancing"),
    "address: not an IP address": report(1, address="10.0.0.1;reboot"),
    "address: peers": report(1, address="0.0.0.0"),  # noqa: S104 - it does not listen
    "address: peers can't": report(1, address="fe80::1%eth0"),
    "port": report(1, port=0),
    "port: expected 1 to 65535": report(1, port=65536),
    "interface": report(1, interface="e" * 257),
    "interface: too long": report(1, interface_why="e" * 257),
    "speed_mbps": report(1, speed_mbps=-1),
    "links: more than 16": report(1, links=(Link("eth0", "10.0.0.5/16"),) * 17),
    "links[0].address: not": report(1, links=(Link("eth0", "10.0.0.5/16;reboot"),)),
    "links[1].address: peers": report(1, links=(Link("a", "10.0.0.5/16"), Link("b", "224.0.0.1/4"))),
    "links[0]: a name": report(1, links=(Link("e" * 257, "10.0.0.5/16"),)),
    "links[0]: a name too long, or a speed": report(1, links=(Link("eth0", "10.0.0.5/16", -1),)),
    "check_port": report(1, check_port=0),
    "figures: expected": report(1, figures=NetworkFigures(9400.0, -1.0)),
    "figures: expected 0 to 1000000000": report(1, figures=NetworkFigures(round_trip_us=1e300)),
    "figures.problem": report(1, figures=NetworkFigures(problem="p" * 257)),
    "problem": report(1, problem=AgentProblem("NoPort", "p" * 5000)),
    "problem.reason: expected one CamelCase word": report(1, problem=AgentProblem("\x1b[2J", "p")),
    "problem.reason: expected one CamelCase word of at most 256": report(1, problem=AgentProblem("P" * 257, "p")),
    "ranks[0].reason: expected one CamelCase word": report(1, exited_rank(0, exit_code=None, reason="OOM\nKilled")),
    "launcher.reason: expected one CamelCase word": report(1, launcher=LauncherEnd("torchrun", 0.0, reason="\ud800")),
    "ranks: a node of this job has 2": report(1, running_rank(0), running_rank(1), running_rank(1)),
    "ranks[0].rank": report(1, running_rank(2)),
    "ranks[1].rank: this node has ranks 0 to 1": report(1, running_rank(0), running_rank(-1, local_rank=1)),
    "ranks[0].local_rank": report(1, running_rank(0, local_rank=2)),
    "ranks: the same rank twice": report(1, running_rank(1), running_rank(1)),
    "ranks[0].state": report(1, running_rank(0, state="Dead")),
    "ranks[0].state: not Exited": report(1, running_rank(0, exit_code=1)),
    "ranks[0].ended_age: missing": report(1, exited_rank(0, ended_age=None)),
    "ranks[0].exit_code: set beside": report(1, exited_rank(0, signal=9, exit_code=1)),
    "ranks[0].exit_code": report(1, exited_rank(0, exit_code=256)),
    "ranks[0].signal": report(1, exited_rank(0, signal=65)),
    "ranks[0].pid": report(1, running_rank(0, pid=0)),
    "ranks[0].step": report(1, running_rank(0, step=-1)),
    "ranks[0].rss_bytes": report(1, running_rank(0, rss_bytes=-1)),
    "ranks[0].activity": report(1, running_rank(0, activity="a" * 257)),
    "ranks[0].last_lines: more": report(1, running_rank(0, last_lines=("x",) * 9)),
    "ranks[0].last_lines: a line": report(1, running_rank(0, last_lines=("x" * 513,))),
    "ranks[0].collectives: more": report(1, running_rank(0, collectives=(GroupCollective("0", "all_reduce", 1),) * 5)),
    "ranks[0].collectives[0]: a name": report(
        1, running_rank(0, collectives=(GroupCollective("g" * 65, "reduce", 1),))
    ),
    "ranks[0].collectives[0]: a seq": report(
        1, running_rank(0, collectives=(GroupCollective("0", "reduce", 1, "r", -1),))
    ),
    "ranks[0].started_age": report(1, running_rank(0, started_age=-0.1)),
    "ranks[0].ended_age": report(1, exited_rank(0, ended_age=1e9)),
    "ranks[0].first_step_age": report(1, running_rank(0, step=1, first_step_age=1e9)),
    "ranks[0].busy_seconds": report(1, running_rank(0, busy_seconds=-0.1)),
    "ranks[0].first_script_step": report(1, running_rank(0, step=1, first_script_step=-1)),
    "ranks[0].total_steps": report(1, running_rank(0, total_steps=0)),
    "ranks[0].mean_steps_per_second": report(1, running_rank(0, mean_steps_per_second=-1.0)),
    "ranks[0].trainer_status.percent": report(1, running_rank(0, trainer_status=TrainerStatus(0.0, percent=101))),
    "ranks[0].trainer_status.rem": report(1, running_rank(0, trainer_status=TrainerStatus(0.0, remaining_seconds=-1))),
    "ranks[0].trainer_status.step:": report(1, running_rank(0, trainer_status=TrainerStatus(0.0, step=-1))),
    "ranks[0].trainer_status.total": report(1, running_rank(0, trainer_status=TrainerStatus(0.0, total_steps=0))),
    "ranks[0].trainer_status.steps": report(1, running_rank(0, trainer_status=TrainerStatus(0.0, steps_per_second=0))),
    "ranks[0].trainer_status.age": report(1, running_rank(0, trainer_status=TrainerStatus(-1.0))),
    "ranks[0].trainer_status: not of rank 0": report(1, running_rank(1, trainer_status=TrainerStatus(0.0))),
    "ranks[0].step_age": report(1, running_rank(0, step=1, step_age=-1.0)),
    "metrics: more": report(1, metrics=(MetricValue("m", 0.0, 0, 0.0),) * 257),
    "metrics[0].rank": report(1, metrics=(MetricValue("m", 0.0, 5, 0.0),)),
    "metrics[0].name": report(1, metrics=(MetricValue("m" * 257, 0.0, 0, 0.0),)),
    "metrics[0].age": report(1, metrics=(MetricValue("m", 0.0, 0, -1.0),)),
    "launcher: a word": report(1, launcher=LauncherEnd("t" * 257, 0.0)),
    "launcher.exit_code": report(1, launcher=LauncherEnd("torchrun", 0.0, 1, 9)),
    "launcher.last_lines": report(1, launcher=LauncherEnd("torchrun", 0.0, 1, last_lines=("x",) * 9)),
    "launcher.age": report(1, launcher=LauncherEnd("torchrun", 1e9, 1)),
}


@pytest.mark.parametrize("name", VALID_REPORTS)
def test_a_valid_report_is_accepted(name: str) -> None:
    check_report(VALID_REPORTS[name], SHAPE, T0)


def test_an_invalid_report_is_refused_with_its_field() -> None:
    def check_row(message_start: str) -> None:
        with pytest.raises(ImplausibleReport) as error:
            check_report(INVALID_REPORTS[message_start], SHAPE, T0)

        assert str(error.value).startswith(message_start)

    check_rows(INVALID_REPORTS, check_row)


@settings(deadline=None)
@given(st.text(), st.text())
def test_the_error_never_repeats_values_of_the_report(address: str, phase: str) -> None:
    invalid: Report = replace(report(1), address="\0" + address, phase=phase + "\0")
    with pytest.raises(ImplausibleReport) as error:
        check_report(invalid, SHAPE, T0)
    assert "\0" not in str(error.value)
