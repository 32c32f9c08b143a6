"""The message about the first failure, and the state of each rank."""

import dataclasses
from collections.abc import Sequence

import pytest

from muster.api.status.status import Status
from muster.core.facts import JobFacts, LauncherFacts
from muster.core.problem import Problem
from muster_worker.contract.schema import AgentPhase, CommandKind, LauncherEnd
from support.rows import check_rows
from unit.core.builders import (
    START,
    agent,
    command,
    compute_status,
    ctrl_c_request,
    exited_launcher,
    exited_process,
    exited_rank,
    facts,
    finished_node,
    job,
    missing_node,
    node,
    rank,
    rank_without_peer,
    ranks_by_state,
    ready_node,
    running_node,
    stopped_node,
    stopped_rank,
    with_error,
    with_sigterm,
    without_reports,
)


def launcher_not_found(seconds: float) -> LauncherFacts:
    return LauncherFacts(LauncherEnd("command", 0.0, reason="CommandNotFound"), START + seconds)


IMPORT_ERROR = "ModuleNotFoundError: No module named 'nope'"
CONNECTION_REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    facts: JobFacts
    message: str
    reason: str
    states: dict[str, str]
    procs: int = 2
    has_ended: bool = True


TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "train.py", line 12, in <module>',
    "    raise ValueError(label)",
)
IN_ALL_REDUCE = (
    '  File "distributed_c10d.py", line 2810, in all_reduce',
    "    work.wait()",
    "[rank0]: RuntimeError: Connection reset by peer",
)

CASES = (
    Case(
        "exit code",
        facts(
            stopped_node(0, rank_without_peer(0, 1.1), exited_rank(1, 1.0, exit_code=7, step=12)),
            stopped_node(1, stopped_rank(2, 1.3), stopped_rank(3, 1.3)),
        ),
        "Rank 1 on digits-0 failed with exit code 7 at step 12; 2 others were stopped, 1 cut off",
        "RankFailed",
        {"Failed": "1", "Stopped": "0,2-3"},
    ),
    Case(
        "raise",
        facts(
            stopped_node(
                0,
                stopped_rank(0, 1.3, "loading data"),
                exited_rank(1, 1.0, exit_code=1, step=12, lines=(*TRACEBACK, "ValueError: bad label")),
            ),
            stopped_node(1, stopped_rank(2, 1.3, "all_reduce"), stopped_rank(3, 1.3, "train.py:27 in main")),
        ),
        "Rank 1 on digits-0 failed with exit code 1 at step 12: ValueError: bad label; "
        "1 other was at train.py:27 in main, 1 in all_reduce, 1 loading data",
        "RankFailed",
        {"Failed": "1", "Stopped": "0,2-3"},
    ),
    Case(
        "kill -9, and torchrun terminates the other rank of its node",
        facts(
            stopped_node(0, rank_without_peer(0, 10.13, "all_reduce"), rank_without_peer(1, 10.14, "all_reduce")),
            stopped_node(1, rank_without_peer(2, 10.12, "all_reduce"), stopped_rank(3, 10.4, "all_reduce")),
            stopped_node(
                2,
                exited_rank(4, 10.0, signal=9, step=1200),
                exited_rank(5, 10.1, signal=15, activity="all_reduce"),
                launcher=exited_launcher(10.3, 1),
            ),
        ),
        "Rank 4 on digits-2 was killed by SIGKILL at step 1200; 5 others were in all_reduce",
        "RankKilled",
        {"Failed": "4", "Stopped": "0-3,5"},
    ),
    Case(
        "kill -9, and the reported time of a secondary failure is a little earlier",
        facts(
            stopped_node(0, rank_without_peer(0, 0.99), rank_without_peer(1, 0.98)),
            stopped_node(1, exited_rank(2, 1.0, signal=9), stopped_rank(3, 1.2)),
        ),
        "Rank 2 on digits-1 was killed by SIGKILL; 2 others were cut off, 1 stopped",
        "RankKilled",
        {"Failed": "2", "Stopped": "0-1,3"},
    ),
    Case(
        "segmentation fault",
        facts(
            stopped_node(0, stopped_rank(0, 2), stopped_rank(1, 2)),
            stopped_node(1, exited_rank(2, 1.0, signal=11, lines=("some warning",)), stopped_rank(3, 2)),
        ),
        "Rank 2 on digits-1 crashed with SIGSEGV; 3 others were stopped",
        "RankKilled",
        {"Failed": "2", "Stopped": "0-1,3"},
    ),
    Case(
        "os._exit, and the activity comes from the others' tracebacks",
        facts(
            stopped_node(
                0,
                exited_rank(0, 1.1, exit_code=1, lines=IN_ALL_REDUCE),
                exited_rank(1, 1.1, exit_code=1, lines=IN_ALL_REDUCE),
            ),
            stopped_node(
                1, exited_rank(2, 1.0, exit_code=3, step=3), exited_rank(3, 1.1, exit_code=1, lines=IN_ALL_REDUCE)
            ),
        ),
        "Rank 2 on digits-1 failed with exit code 3 at step 3; 3 others were in all_reduce",
        "RankFailed",
        {"Failed": "2", "Stopped": "0-1,3"},
    ),
    Case(
        "a rank that ends early",
        facts(
            stopped_node(0, exited_rank(0, 2.0, exit_code=1, lines=IN_ALL_REDUCE), stopped_rank(1, 2.4)),
            stopped_node(1, exited_rank(2, 1.0, exit_code=0, step=3), rank_without_peer(3, 2.1)),
        ),
        "Rank 2 on digits-1 ended early with exit code 0 at step 3; "
        "rank 0 on digits-0 then failed with exit code 1 in all_reduce: RuntimeError: Connection reset by peer; "
        "1 other was cut off, 1 stopped",
        "RankFailed",
        {"Succeeded": "2", "Failed": "0", "Stopped": "1,3"},
    ),
    Case(
        "fewer ranks than asked for",
        facts(finished_node(0, exited_rank(0, 3.0, exit_code=0)), finished_node(1, exited_rank(2, 3.0, exit_code=0))),
        "The job asked for 4 ranks (2 nodes x 2), 2 were seen (0,2)",
        "WorldSizeMismatch",
        {"Pending": "1,3", "Succeeded": "0,2"},
    ),
    Case(
        "both nodes report the same rank",
        facts(finished_node(0, exited_rank(0, 3.0, exit_code=0)), finished_node(1, exited_rank(0, 3.0, exit_code=0))),
        "The job asked for 4 ranks (2 nodes x 2), 1 was seen (0)",
        "WorldSizeMismatch",
        {"Pending": "1-3", "Succeeded": "0"},
    ),
    Case(
        "no rank was seen",
        facts(finished_node(0, launcher=exited_launcher(2.0, 0)), finished_node(1, launcher=exited_launcher(2.0, 0))),
        "The job asked for 4 ranks (2 nodes x 2), none were seen",
        "WorldSizeMismatch",
        {"Pending": "0-3"},
    ),
    Case(
        "a command that does not exist",
        facts(
            stopped_node(
                0, exited_rank(0, 0.1, reason="CommandNotFound"), exited_rank(1, 0.1, reason="CommandNotFound")
            ),
            stopped_node(
                1, exited_rank(2, 0.1, reason="CommandNotFound"), exited_rank(3, 0.1, reason="CommandNotFound")
            ),
        ),
        "All 4 ranks failed the same way: python was not found",
        "CommandNotFound",
        {"Failed": "0-3"},
    ),
    Case(
        "a command that can't be executed on one node",
        facts(
            stopped_node(0, stopped_rank(0, 1), stopped_rank(1, 1)),
            stopped_node(1, exited_rank(2, 0.1, reason="CommandNotExecutable"), stopped_rank(3, 1)),
        ),
        "Rank 2 on digits-1 could not start: python is not executable; 3 others were stopped",
        "CommandNotExecutable",
        {"Failed": "2", "Stopped": "0-1,3"},
    ),
    Case(
        "a script that does not exist",
        facts(
            stopped_node(
                0, *(exited_rank(n, 0.2, exit_code=2, lines=("python: can't open file '/x/train.py'",)) for n in (0, 1))
            ),
            stopped_node(
                1, *(exited_rank(n, 0.3, exit_code=2, lines=("python: can't open file '/x/train.py'",)) for n in (2, 3))
            ),
        ),
        "All 4 ranks failed the same way with exit code 2: python: can't open file '/x/train.py'",
        "RankFailed",
        {"Failed": "0-3"},
    ),
    Case(
        "an import error, and some ranks are stopped before they raise it",
        facts(
            stopped_node(0, exited_rank(0, 1.0, exit_code=1, lines=(IMPORT_ERROR,)), exited_rank(1, 1.1, signal=15)),
            stopped_node(
                1, exited_rank(2, 1.0, exit_code=1, lines=(f"[rank2]: {IMPORT_ERROR}",)), stopped_rank(3, 1.1)
            ),
        ),
        f"2 ranks failed the same way (0,2): {IMPORT_ERROR}; 2 others were stopped",
        "RankFailed",
        {"Failed": "0,2", "Stopped": "1,3"},
    ),
    Case(
        "an import error in ranks that exit while muster stops them",
        facts(
            stopped_node(
                0,
                exited_rank(0, 1.0, exit_code=1, lines=(IMPORT_ERROR,)),
                with_error(exited_rank(1, 1.1, signal=15, stopped=True), 1.0, IMPORT_ERROR),
            ),
            stopped_node(
                1,
                with_error(exited_rank(2, 1.1, exit_code=1, stopped=True), 1.0, IMPORT_ERROR),
                stopped_rank(3, 1.1),
            ),
        ),
        f"3 ranks failed the same way (0-2): {IMPORT_ERROR}; 1 other was stopped",
        "RankFailed",
        {"Failed": "0-2", "Stopped": "3"},
    ),
    Case(
        "the kernel killed two ranks of a node",
        facts(
            stopped_node(0, stopped_rank(0, 2), stopped_rank(1, 2)),
            stopped_node(1, exited_rank(2, 1.1, signal=9), exited_rank(3, 1.0, signal=9, step=8)),
        ),
        "2 ranks were killed by SIGKILL (2-3), rank 3 on digits-1 first at step 8; 2 others were stopped",
        "RankKilled",
        {"Failed": "2-3", "Stopped": "0-1"},
    ),
    Case(
        "failures without output are not the same failure",
        facts(
            stopped_node(0, exited_rank(0, 1.1, exit_code=1), stopped_rank(1, 2)),
            stopped_node(1, exited_rank(2, 1.0, exit_code=1), stopped_rank(3, 2)),
        ),
        "Rank 2 on digits-1 failed with exit code 1; 2 others were stopped, 1 failing too",
        "RankFailed",
        {"Failed": "0,2", "Stopped": "1,3"},
    ),
    Case(
        "a launcher's command that does not exist",
        facts(*(stopped_node(n, launcher=launcher_not_found(0.1)) for n in (0, 1))),
        "command failed the same way on 2 nodes (digits-0, digits-1): python was not found",
        "CommandNotFound",
        {"Pending": "0-3"},
    ),
    Case(
        "an external service refuses the connections of all ranks",
        facts(
            *(
                stopped_node(
                    n, *(exited_rank(2 * n + i, 1.0, exit_code=1, lines=(CONNECTION_REFUSED,)) for i in (0, 1))
                )
                for n in (0, 1)
            )
        ),
        f"All 4 ranks failed the same way: {CONNECTION_REFUSED}",
        "RankFailed",
        {"Failed": "0-3"},
    ),
    Case(
        "muster stops a rank that is exiting with its own error",
        facts(
            stopped_node(0, rank_without_peer(0, 1.0), stopped_rank(1, 1.2)),
            stopped_node(
                1,
                with_error(exited_rank(2, 1.1, signal=15, stopped=True, step=4), 1.0, "ValueError: bad label"),
                stopped_rank(3, 1.2),
            ),
        ),
        "Rank 2 on digits-1 failed at step 4: ValueError: bad label; 2 others were stopped, 1 cut off",
        "RankFailed",
        {"Failed": "2", "Stopped": "0-1,3"},
    ),
    Case(
        "two different errors: the message has the first, and both ranks count as Failed",
        facts(
            stopped_node(0, exited_rank(0, 1.0, exit_code=1, lines=("ValueError: a",)), stopped_rank(1, 1.5)),
            stopped_node(1, exited_rank(2, 1.1, exit_code=1, lines=("KeyError: 'b'",)), stopped_rank(3, 1.5)),
        ),
        "Rank 0 on digits-0 failed with exit code 1: ValueError: a; 2 others were stopped, 1 failing too",
        "RankFailed",
        {"Failed": "0,2", "Stopped": "1,3"},
    ),
    Case(
        "torchrun without torch",
        facts(
            *(
                stopped_node(
                    n, launcher=exited_launcher(0.1 + n, 1, lines=("/usr/bin/python3: No module named torch",))
                )
                for n in (0, 1)
            )
        ),
        "torchrun failed the same way on 2 nodes (digits-0, digits-1): /usr/bin/python3: No module named torch",
        "LauncherFailed",
        {"Pending": "0-3"},
    ),
    Case(
        "torchrun is killed, and its ranks end with it",
        facts(
            stopped_node(
                0,
                exited_rank(0, 1.0, signal=9),
                exited_rank(1, 1.01, reason="WrapperLost"),
                launcher=exited_launcher(1.0, signal=9),
            ),
            stopped_node(1, rank_without_peer(2, 1.1, "all_reduce"), stopped_rank(3, 1.5, "all_reduce")),
        ),
        "torchrun on digits-0 was killed by SIGKILL; 2 others were in all_reduce",
        "LauncherFailed",
        {"Failed": "0-1", "Stopped": "2-3"},
    ),
    Case(
        "the agent kills torchrun after it has stopped the ranks",
        facts(
            stopped_node(
                0,
                exited_rank(0, 1.0, signal=9),
                stopped_rank(1, 1.1),
                launcher=exited_launcher(1.2, signal=9, stopped=True),
            ),
            stopped_node(
                1, stopped_rank(2, 1.1), stopped_rank(3, 1.1), launcher=exited_launcher(1.2, signal=9, stopped=True)
            ),
        ),
        "Rank 0 on digits-0 was killed by SIGKILL; 3 others were stopped",
        "RankKilled",
        {"Failed": "0", "Stopped": "1-3"},
    ),
    Case(
        "the command fails after its ranks succeeded",
        facts(
            finished_node(
                0,
                exited_rank(0, 1.0, exit_code=0),
                exited_rank(1, 1.0, exit_code=0),
                launcher=exited_launcher(2.0, 3, lines=("no space left",)),
            ),
            finished_node(
                1, exited_rank(2, 1.0, exit_code=0), exited_rank(3, 1.0, exit_code=0), launcher=exited_launcher(2.0, 0)
            ),
        ),
        "torchrun on digits-0 failed with exit code 3: no space left; 2 others were done",
        "LauncherFailed",
        {"Succeeded": "0-3"},
    ),
    Case(
        "several ranks lose the processes that watched them",
        facts(
            stopped_node(0, exited_rank(0, 1.0, reason="WrapperLost"), exited_rank(1, 1.0, reason="WrapperLost")),
            stopped_node(1, stopped_rank(2, 2), stopped_rank(3, 2)),
        ),
        "2 ranks were lost with the process that watched them (0-1), rank 0 on digits-0 first; 2 others were stopped",
        "WrapperLost",
        {"Failed": "0-1", "Stopped": "2-3"},
    ),
    Case(
        "the wrapper of a rank is killed",
        facts(
            stopped_node(0, exited_rank(0, 1.0, reason="WrapperLost"), stopped_rank(1, 2)),
            stopped_node(1, stopped_rank(2, 2), stopped_rank(3, 2)),
        ),
        "Rank 0 on digits-0 was lost with the process that watched it; 3 others were stopped",
        "WrapperLost",
        {"Failed": "0", "Stopped": "1-3"},
    ),
    Case(
        "an agent is killed",
        facts(
            stopped_node(0, rank_without_peer(0, 3.1, "all_reduce"), rank_without_peer(1, 3.1, "all_reduce")),
            node(
                1,
                agent(1, AgentPhase.RUNNING, (rank(2), rank(3))),
                exited_process(3.2, signal=9),
                command(CommandKind.START),
            ),
        ),
        "The agent on digits-1 was killed by SIGKILL; 2 others were in all_reduce",
        "AgentLost",
        {"Failed": "2-3", "Stopped": "0-1"},
    ),
    Case(
        "an agent that did not start",
        facts(
            ready_node(0),
            node(
                1,
                process=exited_process(
                    -4, exit_code=1, problem=Problem("AgentNeedsPython", "the image has no python3")
                ),
            ),
        ),
        "digits-1: the image has no python3; 2 others were not started",
        "AgentNeedsPython",
        {"Pending": "0-3"},
        has_ended=False,
    ),
    Case(
        "no interface matches",
        facts(
            ready_node(0), node(1, agent(1, AgentPhase.READY, problem="no interface matches eth7: there are lo, eth0"))
        ),
        "digits-1 can't work: no interface matches eth7: there are lo, eth0; 2 others were not started",
        "NodeProblem",
        {"Pending": "0-3"},
        has_ended=False,
    ),
    Case(
        "something other than muster stops a node",
        facts(
            with_sigterm(finished_node(0, stopped_rank(0, 1.0), stopped_rank(1, 1.0)), 1.0),
            stopped_node(1, rank_without_peer(2, 1.1), rank_without_peer(3, 1.1)),
        ),
        "digits-0 was stopped, but not by muster; 2 others were cut off",
        "NodeStopped",
        {"Stopped": "0-3"},
    ),
    Case(
        "something other than muster stops a node, and muster stops it later",
        facts(
            with_sigterm(stopped_node(0, stopped_rank(0, 1.4), stopped_rank(1, 1.4)), 1.0, final_since=1.2),
            stopped_node(1, rank_without_peer(2, 1.1), rank_without_peer(3, 1.1)),
        ),
        "digits-0 was stopped, but not by muster; 2 others were cut off",
        "NodeStopped",
        {"Stopped": "0-3"},
    ),
    Case(
        "muster stops a node, and something else stops it later",
        facts(
            with_sigterm(stopped_node(0, stopped_rank(0, 1.4), stopped_rank(1, 1.4)), 1.3, final_since=1.2),
            stopped_node(1, exited_rank(2, 1.1, exit_code=7), stopped_rank(3, 1.4)),
        ),
        "Rank 2 on digits-1 failed with exit code 7; 3 others were stopped",
        "RankFailed",
        {"Stopped": "0-1,3", "Failed": "2"},
    ),
    Case(
        "a node was deleted",
        facts(missing_node(0), stopped_node(1, rank_without_peer(2, 1.1), rank_without_peer(3, 1.1))),
        "digits-0 was removed, but not by muster; 2 others were cut off",
        "NodeLost",
        {"Failed": "0-1", "Stopped": "2-3"},
    ),
    Case(
        "Ctrl-C",
        facts(
            stopped_node(0, stopped_rank(0, 5.1, "all_reduce", 120), stopped_rank(1, 5.1, "all_reduce", 121)),
            stopped_node(1, rank_without_peer(2, 5.2, "all_reduce", 120), stopped_rank(3, 5.1, "backward", 120)),
            stop=ctrl_c_request(5.0),
        ),
        "Stopped by Ctrl-C at step 120; 3 ranks were in all_reduce, 1 in backward",
        "StopRequested",
        {"Stopped": "0-3"},
    ),
    Case(
        "a failure just before Ctrl-C",
        facts(
            stopped_node(0, exited_rank(0, 4.9, exit_code=7), stopped_rank(1, 5.1)),
            stopped_node(1, stopped_rank(2, 5.1), stopped_rank(3, 5.1)),
            stop=ctrl_c_request(5.0),
        ),
        "Rank 0 on digits-0 failed with exit code 7; 3 others were stopped",
        "RankFailed",
        {"Failed": "0", "Stopped": "1-3"},
    ),
    Case(
        "a single rank's lost connection is its own failure",
        facts(stopped_node(0, exited_rank(0, 1.0, exit_code=1, lines=("BrokenPipeError: [Errno 32] Broken pipe",)))),
        "Rank 0 on digits-0 failed with exit code 1: BrokenPipeError: [Errno 32] Broken pipe",
        "RankFailed",
        {"Failed": "0"},
        procs=1,
    ),
    Case(
        "a rank whose end was not reported",
        facts(
            finished_node(0, rank(0), exited_rank(1, 1, exit_code=0)),
            finished_node(1, exited_rank(2, 1, exit_code=0), exited_rank(3, 1, exit_code=0)),
        ),
        "All nodes ended, but not all of the 4 ranks reported how; 3 ranks were done, 1 unknown",
        "RanksLost",
        {"Succeeded": "1-3", "Unknown": "0"},
    ),
)


def test_the_message_of_a_failed_job() -> None:
    def check(case: Case) -> None:
        status = compute_status(job(len(case.facts.nodes), case.procs), Status(), case.facts, START + 20)

        failed = next(entry for entry in status.conditions if entry.type == "Failed")
        assert status.message == case.message
        assert ranks_by_state(status) == case.states
        if case.has_ended:
            assert (status.phase, failed.status, failed.reason) == ("Failed", "True", case.reason)
            assert failed.message == case.message
        else:
            assert (status.phase, failed.status, failed.reason) == ("Stopping", "False", "Stopping")

    check_rows(CASES, check)


def test_the_problem_of_a_node_is_reported_although_another_node_is_silent() -> None:
    current = facts(without_reports(ready_node(0)), node(1, agent(1, AgentPhase.READY, problem="no address")))

    assert compute_status(job(), Status(), current, START).message.startswith("digits-1 can't work: no address")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("\x1b[31mValueError: red\x1b[0m",), "ValueError: red"),
        (("ValueError: a\nb\tc\x00d",), "ValueError: a b c d"),
        (("ValueError: " + "x" * 5000,), "ValueError: " + "x" * 287 + "…"),
        (("ValueError: the cause", "[W1121 socket.cpp] process group was not destroyed"), "ValueError: the cause"),
        (("just words", ""), "just words"),
        (("\u202egnp.exe",), "gnp.exe"),
    ],
)
def test_the_output_of_a_rank_is_cleaned(lines: Sequence[str], message: str) -> None:
    current = facts(stopped_node(0, exited_rank(0, 1.0, exit_code=1, lines=lines)))

    status = compute_status(job(1, 1), Status(), current, START + 2)

    assert status.message == f"Rank 0 on digits-0 failed with exit code 1: {message}"


def test_details_have_sixteen_ranks_and_begin_with_the_root_cause() -> None:
    ranks = [rank_without_peer(number, 1.1) for number in range(40)]
    ranks[33] = exited_rank(33, 1.2, signal=9)

    status = compute_status(job(1, 40), Status(), facts(stopped_node(0, *ranks)), START + 2)

    assert status.ranks is not None
    assert [entry.rank for entry in status.ranks.details] == [33, *range(15)]
    assert {entry.state for entry in status.ranks.details[1:]} == {"Stopped"}
    assert {entry.reason for entry in status.ranks.details[1:]} == {"PeerFailed"}
    assert {entry.exit_code for entry in status.ranks.details[1:]} == {1}


def test_the_message_names_the_root_cause_while_other_ranks_are_stopped() -> None:
    current = facts(running_node(0, rank(0), rank(1)), running_node(1, exited_rank(2, 1.0, signal=9), rank(3)))

    status = compute_status(job(), Status(), current, START + 1)

    assert status.phase == "Stopping"
    assert status.message == "Rank 2 on digits-1 was killed by SIGKILL; 3 others were still running"
    true = {entry.type for entry in status.conditions if entry.status == "True"}
    assert true == {"Accepted", "Scheduled", "Reconciling"}
