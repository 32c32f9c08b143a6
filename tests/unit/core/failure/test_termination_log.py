"""muster uses the pod's termination log if it did not receive the agent's last report."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.status.status import Status
from muster.core.facts import NodeFacts
from muster.core.failure.termination_log import read_termination_message
from muster.core.termination_message import TerminationMessage
from muster_worker.agent.termination import build_summary
from muster_worker.contract.schema import AgentPhase, AgentProblem, LauncherEnd, RankReport, RankState, Report
from unit.core.builders import (
    START,
    UID,
    compute_status,
    exited_process,
    exited_rank,
    facts,
    job,
    node,
    rank,
    ranks_by_state,
    running_node,
)

RUNNING_STATUS = Status(attempt=1, start_time="2025-11-21T04:05:05Z")


def termination_message(
    number: int, *ranks: RankReport, exit_code: int = 0, problem: AgentProblem | None = None
) -> TerminationMessage:
    report = Report(UID, number, 0, 0 if problem else 1, 9, AgentPhase.ENDED, ranks=ranks, problem=problem)
    value = read_termination_message(build_summary(report, exit_code).decode())
    assert value is not None
    return value


def succeeded_report(number: int) -> RankReport:
    return RankReport(number, number % 2, RankState.EXITED, exit_code=0, ended_age=1.0)


def failed_report(number: int) -> RankReport:
    lines = ("ValueError: bad label",)
    return RankReport(number, number % 2, RankState.EXITED, exit_code=7, ended_age=1.0, step=12, last_lines=lines)


def exited_node(
    number: int, message: TerminationMessage, reported: NodeFacts | None = None, exit_code: int = 0
) -> NodeFacts:
    process = replace(exited_process(20, exit_code=exit_code), termination_message=message)
    return node(number, reported.agent if reported is not None else None, process)


def test_all_ranks_succeeded_without_a_received_report() -> None:
    current = facts(
        exited_node(0, termination_message(0, succeeded_report(0), succeeded_report(1))),
        exited_node(1, termination_message(1, succeeded_report(2), succeeded_report(3))),
    )

    status = compute_status(job(), RUNNING_STATUS, current, START + 30)

    assert (status.phase, status.message, ranks_by_state(status)) == (
        "Succeeded",
        "All 4 ranks succeeded",
        {"Succeeded": "0-3"},
    )


def test_earlier_reports_complete_the_termination_log() -> None:
    reported = running_node(0, rank(0, step=50), exited_rank(1, 3.0, exit_code=0))
    current = facts(
        exited_node(0, termination_message(0, succeeded_report(0), succeeded_report(1)), reported),
        exited_node(1, termination_message(1, succeeded_report(2), succeeded_report(3))),
    )

    status = compute_status(job(), RUNNING_STATUS, current, START + 30)

    assert ranks_by_state(status) == {"Succeeded": "0-3"}
    assert status.message == "All 4 ranks succeeded at step 50"


def test_the_first_failure_is_named() -> None:
    current = facts(
        exited_node(0, termination_message(0, succeeded_report(0), succeeded_report(1))),
        exited_node(1, termination_message(1, failed_report(2), succeeded_report(3), exit_code=7), exit_code=7),
    )

    status = compute_status(job(), RUNNING_STATUS, current, START + 30)

    assert (
        status.message
        == "Rank 2 on digits-1 failed with exit code 7 at step 12: ValueError: bad label; 3 others were done"
    )
    assert ranks_by_state(status) == {"Succeeded": "0-1,3", "Failed": "2"}


def test_a_problem_before_the_start_is_reported() -> None:
    problem = termination_message(1, problem=AgentProblem("NoInterface", "no interface matches eth7"))

    status = compute_status(job(), Status(), facts(node(0), exited_node(1, problem, exit_code=1)), START + 30)

    assert status.message.startswith("digits-1 can't work: no interface matches eth7")


@pytest.mark.parametrize("changes", [{"job_uid": "another"}, {"node": 0}, {"replacement": 1}, {"attempt": 0}])
def test_a_message_of_another_pod_or_attempt_is_ignored(changes: dict[str, object]) -> None:
    message = replace(termination_message(1, succeeded_report(2), succeeded_report(3)), **changes)  # type: ignore[arg-type]
    current = facts(
        exited_node(0, termination_message(0, succeeded_report(0), succeeded_report(1))), exited_node(1, message)
    )

    assert compute_status(job(), RUNNING_STATUS, current, START + 30).message.startswith(
        "The agent on digits-1 left with exit code 0"
    )


def test_the_summary_of_a_report_is_parsed() -> None:
    launcher = LauncherEnd("torchrun", 3.0, exit_code=1, last_lines=("no space left",))
    report = Report(
        UID, 1, 2, 3, 9, AgentPhase.ENDED, ranks=(succeeded_report(2),), launcher=launcher, terminated_age=1.0
    )

    assert read_termination_message(build_summary(report, 1).decode()) == TerminationMessage(
        UID, 1, 2, 3, ranks=1, succeeded=1, terminated=True, launcher=replace(launcher, age=0.0)
    )


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", "null", "[" * 5000, '{"jobUid": 1, "node": 0}', '{"jobUid": "u"']
)
def test_invalid_text_is_no_termination_message(text: str) -> None:
    assert read_termination_message(text) is None


@given(
    st.dictionaries(
        st.sampled_from(("ranks", "succeeded", "problem", "launcher", "firstFailure")),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=9),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(("rank", "name", "exitCode", "lastLines", "reason", "x")), inner, max_size=4
                )
            ),
        ),
    )
)
def test_every_termination_message_gives_a_status(fields: dict[str, object]) -> None:
    text = json.dumps({"jobUid": UID, "node": 1, "replacement": 0, "attempt": 1, **fields})
    message = read_termination_message(text)
    assert message is not None

    status = compute_status(
        job(), RUNNING_STATUS, facts(running_node(0, rank(0), rank(1)), exited_node(1, message)), START + 30
    )

    assert status.ranks is not None
    assert sum(entry.count for entry in status.ranks.by_state) == 4


def test_a_reason_that_is_not_one_word_is_ignored() -> None:
    escape_sequence = "\x1b[2J"
    document = {
        "jobUid": UID,
        "node": 0,
        "replacement": 0,
        "attempt": 1,
        "problem": "p",
        "problemReason": escape_sequence,
        "launcher": {"exitCode": 1, "reason": escape_sequence},
        "firstFailure": {"rank": 0, "exitCode": 1, "reason": escape_sequence},
    }
    message = read_termination_message(json.dumps(document))
    assert message is not None
    assert message.problem == AgentProblem("NodeProblem", "p")
    assert message.launcher is not None
    assert message.first_failure is not None
    assert (message.launcher.reason, message.first_failure.reason) == (None, None)
