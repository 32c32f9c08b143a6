"""The message about the first failure in an MPI world, where mpirun ends all other ranks and then fails itself."""

import dataclasses
from dataclasses import replace

from muster.api.status.status import Status
from muster.core.facts import JobFacts, LauncherFacts, NodeFacts, RankFacts
from muster.core.problem import Problem
from muster_worker.contract.schema import AgentPhase, AgentProblem, CommandKind
from support.rows import check_rows
from unit.core.builders import (
    START,
    agent,
    command,
    compute_status,
    exited_launcher,
    exited_process,
    exited_rank,
    facts,
    finished_node,
    mpi_job,
    node,
    rank,
    ranks_by_state,
    running_node,
    starting_rank,
    stopped_node,
    stopped_rank,
    with_sigterm,
    with_spec,
)

OPEN_MPI_EXIT = (
    "prterun detected that one or more processes exited with non-zero status,",
    "thus causing the job to be terminated. The first process to do so was:",
    "   Process name: [prterun-algo-1-23276@1,1]",
    "   Exit code:    3",
    "-" * 74,
)
OPEN_MPI_RANK_KILLED = (
    "-" * 74,
    "mpirun noticed that process rank 3 with PID 23930 on node algo-2 exited on signal 9 (Killed).",
    "-" * 74,
)
OPEN_MPI_EARLY_EXIT = (
    "This may have caused other processes in the application to be",
    "terminated by signals sent by prterun (as reported here).",
    "-" * 74,
)
HYDRA_RANK_KILLED = (
    "=   PID 30062 RUNNING AT algo-2",
    "=   EXIT CODE: 9",
    "=   CLEANING UP REMAINING PROCESSES",
    "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES",
    "=" * 83,
    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
    "This typically refers to a problem with your application.",
)
OPEN_MPI_SOCKET_CLOSED = (
    "[algo-1:00000] *** An error occurred in Socket closed",
    "[algo-1:00000] *** reported by process [1086717953,0]",
    "[algo-1:00000] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
)
OPEN_MPI_NO_DAEMON = (
    "  Local host:    algo-1",
    "  Remote host:   algo-2",
    "  Daemon exit status: 255",
    "",
    "This may also be caused by a firewall on the remote host.",
    "-" * 60,
)
HYDRA_ASSERTION_FAILED = ("[proxy:0@algo-1] HYD_pmcd_pmip_control_cmd_cb (pmip_cb.c:490): assert (!closed) failed",)
HYDRA_ABORT = ("Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1",)
WRONG_WORLD = "mpirun gave a world of 4 ranks on one node; the job asks for 2 nodes x 2 ranks"
WRONG_RANK = "a process reports to be rank 2; the node has ranks 0 to 1"
WRONG_WORLD_LINES = (f"muster: {WRONG_WORLD}",)


def exited_mpirun(
    at: float, code: int | None = None, signal: int | None = None, lines: tuple[str, ...] = ()
) -> LauncherFacts:
    return exited_launcher(at, code, signal, lines, name="mpirun")


def with_reason(current: LauncherFacts, reason: str) -> LauncherFacts:
    return replace(current, end=replace(current.end, reason=reason))


def stopped_by_agent(current: LauncherFacts) -> LauncherFacts:
    return replace(current, end=replace(current.end, stopped=True))


def rank_after_sigterm(number: int, at: float) -> RankFacts:
    return exited_rank(number, at, signal=15)


def rank_after_sigkill(number: int, at: float) -> RankFacts:
    return exited_rank(number, at, signal=9)


def with_wrong_world(current: NodeFacts, message: str) -> NodeFacts:
    """Return the same node, whose agent reports that its ranks have the wrong world size."""
    assert current.agent is not None
    report = replace(current.agent.report, problem=AgentProblem("WorldSizeMismatch", message))
    return replace(current, agent=replace(current.agent, report=report))


def head_node(*ranks: RankFacts, launcher: LauncherFacts) -> NodeFacts:
    """Return node 0, whose mpirun has ended."""
    return finished_node(0, *ranks, launcher=launcher)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    facts: JobFacts
    message: str
    reason: str
    states: dict[str, str]


CASES = (
    Case(
        "Open MPI: exit code, the others get SIGTERM",
        facts(
            head_node(
                rank_after_sigterm(0, 1.30),
                exited_rank(1, 1.0, exit_code=3),
                launcher=exited_mpirun(1.5, 3, lines=OPEN_MPI_EXIT),
            ),
            stopped_node(1, rank_after_sigterm(2, 1.31), rank_after_sigterm(3, 1.31)),
        ),
        "Rank 1 on digits-0 failed with exit code 3; 3 others were stopped",
        "RankFailed",
        {"Failed": "1", "Stopped": "0,2-3"},
    ),
    Case(
        "Open MPI: kill -9 on another node",
        facts(
            head_node(
                rank_after_sigterm(0, 1.30),
                rank_after_sigterm(1, 1.30),
                launcher=exited_mpirun(1.5, 137, lines=OPEN_MPI_RANK_KILLED),
            ),
            stopped_node(1, rank_after_sigterm(2, 1.29), rank_after_sigkill(3, 1.0)),
        ),
        "Rank 3 on digits-1 was killed by SIGKILL; 3 others were stopped",
        "RankKilled",
        {"Failed": "3", "Stopped": "0-2"},
    ),
    Case(
        "Open MPI 5: kill -9, and the end of a rank that lost its peer is reported first",
        facts(
            head_node(
                exited_rank(0, 0.9, exit_code=14),
                rank_after_sigterm(1, 0.95),
                launcher=exited_mpirun(1.6, 1, lines=OPEN_MPI_SOCKET_CLOSED),
            ),
            stopped_node(1, rank_after_sigkill(2, 1.0), stopped_rank(3, 1.2)),
        ),
        "Rank 2 on digits-1 was killed by SIGKILL; 3 others were stopped",
        "RankKilled",
        {"Failed": "2", "Stopped": "0-1,3"},
    ),
    Case(
        "Open MPI 5: mpirun ends with the exit code of a rank that lost its peer, which ended earlier by its clock",
        facts(
            head_node(
                exited_rank(0, 0.9, exit_code=14),
                rank_after_sigterm(1, 1.3),
                launcher=exited_mpirun(1.6, 14, lines=OPEN_MPI_EXIT),
            ),
            stopped_node(1, rank_after_sigterm(2, 1.3), exited_rank(3, 1.0, exit_code=3)),
        ),
        "Rank 3 on digits-1 failed with exit code 3; 3 others were stopped",
        "RankFailed",
        {"Failed": "3", "Stopped": "0-2"},
    ),
    Case(
        "a script that exits with the exit code of a lost peer",
        facts(
            head_node(
                exited_rank(0, 1.0, exit_code=14),
                rank_after_sigterm(1, 1.3),
                launcher=exited_mpirun(1.6, 14, lines=OPEN_MPI_EXIT),
            ),
            stopped_node(1, rank_after_sigterm(2, 1.3), rank_after_sigterm(3, 1.3)),
        ),
        "Rank 0 on digits-0 failed with exit code 14; 3 others were stopped",
        "RankFailed",
        {"Failed": "0", "Stopped": "1-3"},
    ),
    Case(
        "Hydra: kill -9, and mpirun kills the others in the same way",
        facts(
            head_node(
                rank_after_sigkill(0, 1.02),
                rank_after_sigkill(1, 1.02),
                launcher=exited_mpirun(1.1, 9, lines=HYDRA_RANK_KILLED),
            ),
            stopped_node(1, exited_rank(2, 1.01, reason="WrapperLost"), rank_after_sigkill(3, 1.0)),
        ),
        "Rank 3 on digits-1 was killed by SIGKILL; 3 others were stopped",
        "RankKilled",
        {"Failed": "3", "Stopped": "0-2"},
    ),
    Case(
        "Hydra: exit code, and the reported times of the others' ends are earlier",
        facts(
            head_node(
                rank_after_sigkill(0, 0.95),
                exited_rank(1, 1.0, exit_code=3),
                launcher=exited_mpirun(1.1, 9, lines=HYDRA_RANK_KILLED),
            ),
            stopped_node(1, rank_after_sigkill(2, 0.9), rank_after_sigkill(3, 0.9)),
        ),
        "Rank 1 on digits-0 failed with exit code 3; 3 others were stopped",
        "RankFailed",
        {"Failed": "1", "Stopped": "0,2-3"},
    ),
    Case(
        "a rank is killed long before another one fails with an error",
        facts(
            head_node(
                rank_after_sigkill(0, 1.0),
                exited_rank(1, 1.5, exit_code=1, lines=("KeyError: 0",)),
                launcher=exited_mpirun(2, 137),
            ),
            stopped_node(1, rank_after_sigterm(2, 1.6), rank_after_sigterm(3, 1.6)),
        ),
        "Rank 0 on digits-0 was killed by SIGKILL; 2 others were stopped, 1 failing too",
        "RankKilled",
        {"Failed": "0-1", "Stopped": "2-3"},
    ),
    Case(
        "Hydra in spec.command: MPI_Abort is in mpirun's output, and another rank's end is the first",
        facts(
            head_node(
                rank_after_sigkill(0, 1.04),
                rank_after_sigkill(1, 1.03),
                launcher=exited_mpirun(1.02, 1, lines=("ValueError: a", *HYDRA_ABORT)),
            ),
            finished_node(1, rank_after_sigkill(2, 1.01), rank_after_sigkill(3, 1.0)),
        ),
        "mpirun on digits-0 failed with exit code 1: ValueError: a; 4 ranks were stopped",
        "LauncherFailed",
        {"Stopped": "0-3"},
    ),
    Case(
        "Hydra: MPI_Abort, and all are killed at once",
        facts(
            head_node(
                rank_after_sigkill(0, 1.0),
                exited_rank(1, 1.001, signal=9, lines=HYDRA_ABORT),
                launcher=exited_mpirun(1.1, 3, lines=HYDRA_RANK_KILLED),
            ),
            stopped_node(1, rank_after_sigkill(2, 1.0), rank_after_sigkill(3, 1.0)),
        ),
        "Rank 1 on digits-0 called MPI_Abort: Abort(3) on node 1 (rank 1 in comm 0): application called "
        "MPI_Abort(MPI_COMM_WORLD, 3) - process 1; 3 others were stopped",
        "RankKilled",
        {"Failed": "1", "Stopped": "0,2-3"},
    ),
    Case(
        "a rank that exits early",
        facts(
            head_node(
                exited_rank(0, 1.0, exit_code=0),
                rank_after_sigterm(1, 1.3),
                launcher=exited_mpirun(1.5, 1, lines=OPEN_MPI_EARLY_EXIT),
            ),
            stopped_node(1, rank_after_sigterm(2, 1.4), rank_after_sigterm(3, 1.4)),
        ),
        "Rank 0 on digits-0 ended early with exit code 0; rank 1 on digits-0 then was killed by SIGTERM; "
        "2 others were stopped",
        "RankKilled",
        {"Succeeded": "0", "Failed": "1", "Stopped": "2-3"},
    ),
    Case(
        "Hydra: a rank that exits early, and the others are killed",
        facts(
            head_node(
                rank_after_sigkill(0, 1.02),
                rank_after_sigkill(1, 1.02),
                launcher=exited_mpirun(1.1, 9, lines=HYDRA_RANK_KILLED),
            ),
            stopped_node(1, exited_rank(2, 1.0, exit_code=0), rank_after_sigkill(3, 1.01)),
        ),
        "Rank 2 on digits-1 ended early with exit code 0; rank 3 on digits-1 then was killed by SIGKILL; "
        "2 others were stopped",
        "RankKilled",
        {"Succeeded": "2", "Failed": "3", "Stopped": "0-1"},
    ),
    Case(
        "Open MPI 5: a rank that exits early on a busy machine, where the others notice it late",
        facts(
            head_node(
                exited_rank(0, 3.1, exit_code=14),
                stopped_rank(1, 3.4),
                launcher=exited_mpirun(3.5, 14, lines=OPEN_MPI_SOCKET_CLOSED),
            ),
            stopped_node(1, exited_rank(2, 1.0, exit_code=0), stopped_rank(3, 3.4)),
        ),
        "Rank 2 on digits-1 ended early with exit code 0; rank 0 on digits-0 then failed with exit code 14; "
        "2 others were stopped",
        "RankFailed",
        {"Succeeded": "2", "Failed": "0", "Stopped": "1,3"},
    ),
    Case(
        "Open MPI 5: a rank that exits early, and the reported time of its end is after another's",
        facts(
            head_node(
                exited_rank(0, 0.9, exit_code=14),
                stopped_rank(1, 3.4),
                launcher=exited_mpirun(3.5, 14, lines=OPEN_MPI_SOCKET_CLOSED),
            ),
            stopped_node(1, exited_rank(2, 1.0, exit_code=0), stopped_rank(3, 3.4)),
        ),
        "Rank 2 on digits-1 ended early with exit code 0; rank 0 on digits-0 then failed with exit code 14; "
        "2 others were stopped",
        "RankFailed",
        {"Succeeded": "2", "Failed": "0", "Stopped": "1,3"},
    ),
    Case(
        "a rank is killed long after the others succeeded",
        facts(
            head_node(
                exited_rank(0, 1.0, exit_code=0), exited_rank(1, 1.0, exit_code=0), launcher=exited_mpirun(4, 137)
            ),
            stopped_node(1, rank_after_sigkill(2, 3.9), exited_rank(3, 1.0, exit_code=0)),
        ),
        "Rank 2 on digits-1 was killed by SIGKILL; 3 others were done",
        "RankKilled",
        {"Succeeded": "0-1,3", "Failed": "2"},
    ),
    Case(
        "Hydra: kill -9, and mpirun crashes while it ends the others",
        facts(
            head_node(
                rank_after_sigkill(0, 1.09),
                rank_after_sigkill(1, 1.09),
                launcher=exited_mpirun(1.02, 255, lines=HYDRA_ASSERTION_FAILED),
            ),
            stopped_node(1, rank_after_sigkill(2, 1.0), rank_after_sigkill(3, 1.004)),
        ),
        "Rank 2 on digits-1 was killed by SIGKILL; 3 others were stopped",
        "RankKilled",
        {"Failed": "2", "Stopped": "0-1,3"},
    ),
    Case(
        "Open MPI 4: mpirun crashes after it has ended its ranks",
        facts(
            head_node(
                rank_after_sigterm(0, 1.55),
                stopped_rank(1, 1.6),
                launcher=stopped_by_agent(exited_mpirun(1.6, signal=11)),
            ),
            stopped_node(1, exited_rank(2, 1.0, exit_code=0), stopped_rank(3, 1.61)),
        ),
        "Rank 2 on digits-1 ended early with exit code 0; rank 0 on digits-0 then was killed by SIGTERM; "
        "2 others were stopped",
        "RankKilled",
        {"Succeeded": "2", "Failed": "0", "Stopped": "1,3"},
    ),
    Case(
        "the daemons can't be started",
        facts(
            head_node(starting_rank(0), starting_rank(1), launcher=exited_mpirun(1.0, 255, lines=OPEN_MPI_NO_DAEMON)),
            stopped_node(1, starting_rank(2), starting_rank(3)),
        ),
        "mpirun on digits-0 failed with exit code 255: Local host: algo-1 Remote host: algo-2 Daemon exit status: 255 "
        "This may also be caused by a firewall on the remote host.; 4 ranks were not started",
        "LauncherFailed",
        {"Pending": "0-3"},
    ),
    Case(
        "the message has only muster's own line of mpirun's output",
        facts(
            head_node(
                launcher=exited_mpirun(1.0, 255, lines=("muster: algo-2 can't be reached", "Launch proxy failed."))
            ),
            stopped_node(1),
        ),
        "mpirun on digits-0 failed with exit code 255: algo-2 can't be reached; 4 ranks were not started",
        "LauncherFailed",
        {"Pending": "0-3"},
    ),
    Case(
        "mpirun is killed, and its ranks end with it",
        facts(
            head_node(rank_after_sigkill(0, 1.1), rank_after_sigterm(1, 1.1), launcher=exited_mpirun(1.0, signal=9)),
            stopped_node(1, rank_after_sigkill(2, 1.2), stopped_rank(3, 1.2)),
        ),
        "mpirun on digits-0 was killed by SIGKILL; 4 ranks were stopped",
        "LauncherFailed",
        {"Stopped": "0-3"},
    ),
    Case(
        "mpirun fails although all ranks succeeded",
        facts(
            head_node(
                exited_rank(0, 1, exit_code=0),
                exited_rank(1, 1, exit_code=0),
                launcher=exited_mpirun(1.1, 1, lines=("oops",)),
            ),
            stopped_node(1, exited_rank(2, 1, exit_code=0), exited_rank(3, 1, exit_code=0)),
        ),
        "mpirun on digits-0 failed with exit code 1: oops; 4 ranks were done",
        "LauncherFailed",
        {"Succeeded": "0-3"},
    ),
    Case(
        "a node is lost",
        facts(
            head_node(
                rank_after_sigkill(0, 1.1),
                rank_after_sigkill(1, 1.1),
                launcher=exited_mpirun(1.2, 1, lines=("lost communication",)),
            ),
            node(
                1,
                agent(1, AgentPhase.RUNNING, [rank(2), rank(3)]),
                process=exited_process(
                    1.05, signal=9, problem=Problem("OOMKilled", "container trainer ran out of memory")
                ),
                sent_command=command(CommandKind.START),
            ),
        ),
        "digits-1: container trainer ran out of memory; 2 others were stopped",
        "OOMKilled",
        {"Failed": "2-3", "Stopped": "0-1"},
    ),
    Case(
        "something other than muster stops a node",
        facts(
            head_node(
                rank_after_sigterm(0, 1.3),
                rank_after_sigterm(1, 1.3),
                launcher=exited_mpirun(1.5, 1, lines=("lost node",)),
            ),
            with_sigterm(stopped_node(1, stopped_rank(2, 1.1), stopped_rank(3, 1.1)), 1.0, final_since=1.6),
        ),
        "digits-1 was stopped, but not by muster; 2 others were stopped",
        "NodeStopped",
        {"Stopped": "0-3"},
    ),
    Case(
        "a wrong world",
        facts(
            head_node(
                exited_rank(0, 1.0, exit_code=65, reason="WorldSizeMismatch", lines=WRONG_WORLD_LINES),
                exited_rank(1, 1.0, exit_code=65, reason="WorldSizeMismatch", lines=WRONG_WORLD_LINES),
                launcher=exited_mpirun(1.1, 65, lines=OPEN_MPI_EXIT),
            ),
            stopped_node(1),
        ),
        "mpirun gave a world of 4 ranks on one node; the job asks for 2 nodes x 2 ranks; 2 others were not started",
        "WorldSizeMismatch",
        {"Failed": "0-1", "Pending": "2-3"},
    ),
    Case(
        "a wrong world from an mpirun in spec.command",
        facts(
            with_wrong_world(head_node(rank(0), rank(1), launcher=exited_mpirun(1.1, 1)), WRONG_WORLD), stopped_node(1)
        ),
        "mpirun gave a world of 4 ranks on one node; the job asks for 2 nodes x 2 ranks; 2 others were not started",
        "WorldSizeMismatch",
        {"Unknown": "0-1", "Pending": "2-3"},
    ),
    Case(
        "ranks that are not numbered node by node",
        facts(with_wrong_world(head_node(rank(0), launcher=exited_mpirun(1.1, 1)), WRONG_RANK), stopped_node(1)),
        "The job asked for 4 ranks (2 nodes x 2), but on digits-0 a process reports to be rank 2; the node has ranks "
        "0 to 1; 2 others were not started",
        "WorldSizeMismatch",
        {"Unknown": "0", "Pending": "1-3"},
    ),
    Case(
        "a wrong world size that the output does not name",
        facts(
            head_node(
                rank_after_sigterm(0, 0.9),
                exited_rank(1, 1.0, exit_code=65, reason="WorldSizeMismatch"),
                launcher=exited_mpirun(2, 65),
            ),
            stopped_node(1),
        ),
        "The job asked for 4 ranks (2 nodes x 2), but rank 1 on digits-0 has another world size; "
        "2 others were not started, 1 stopped",
        "WorldSizeMismatch",
        {"Failed": "1", "Stopped": "0", "Pending": "2-3"},
    ),
    Case(
        "mpirun starts only half of the ranks and succeeds",
        facts(
            head_node(exited_rank(0, 1, exit_code=0), exited_rank(1, 1, exit_code=0), launcher=exited_mpirun(1.1, 0)),
            stopped_node(1),
        ),
        "The job asked for 4 ranks (2 nodes x 2), 2 were seen (0-1) when mpirun ended with exit code 0",
        "WorldSizeMismatch",
        {"Succeeded": "0-1", "Pending": "2-3"},
    ),
    Case(
        "mpirun does not exist",
        facts(
            head_node(
                launcher=with_reason(exited_mpirun(0.1, 127, lines=("muster: no mpirun on PATH",)), "CommandNotFound")
            ),
            stopped_node(1),
        ),
        "mpirun on digits-0 could not start: no mpirun on PATH; 4 ranks were not started",
        "CommandNotFound",
        {"Pending": "0-3"},
    ),
    Case(
        "all ranks succeed",
        facts(
            head_node(exited_rank(0, 1, exit_code=0), exited_rank(1, 1, exit_code=0), launcher=exited_mpirun(1.1, 0)),
            stopped_node(1, exited_rank(2, 1, exit_code=0), exited_rank(3, 1, exit_code=0)),
        ),
        "All 4 ranks succeeded",
        "AllRanksSucceeded",
        {"Succeeded": "0-3"},
    ),
)


def test_the_message_names_the_root_cause() -> None:
    def check(case: Case) -> None:
        status = compute_status(mpi_job(), Status(), case.facts, 1e10)

        assert status.message == case.message
        assert ranks_by_state(status) == case.states
        (condition,) = (
            entry for entry in status.conditions if entry.type in ("Complete", "Failed") and entry.status == "True"
        )
        assert condition.reason == case.reason

    check_rows(CASES, check)


def test_the_message_says_that_muster_may_have_missed_ranks_of_an_mpirun_in_the_command() -> None:
    job = with_spec(mpi_job(), command=("/opt/bin/mpirun", "./train"))
    job_facts = facts(
        head_node(starting_rank(0), starting_rank(1), launcher=exited_mpirun(1.1, 0)),
        stopped_node(1, starting_rank(2), starting_rank(3)),
    )

    assert compute_status(job, Status(), job_facts, 1e10).message == (
        "The job asked for 4 ranks (2 nodes x 2), none were seen when mpirun ended with exit code 0; "
        "if they ran, remove mpirun from spec.command, so that muster starts it"
    )


def facts_with_wrong_world(other: NodeFacts) -> JobFacts:
    failed_ranks = [
        exited_rank(each, 1.0, exit_code=65, reason="WorldSizeMismatch", lines=WRONG_WORLD_LINES) for each in (0, 1)
    ]
    return facts(head_node(*failed_ranks, launcher=exited_mpirun(1.1, 65, lines=OPEN_MPI_EXIT)), other)


def test_ranks_that_were_not_started_are_not_running_while_the_job_stops() -> None:
    status = compute_status(
        mpi_job(), Status(), facts_with_wrong_world(running_node(1, starting_rank(2), starting_rank(3))), START + 2
    )

    assert status.phase == "Stopping"
    assert status.message == f"{WRONG_WORLD}; 2 others were not started yet"


def test_ranks_that_were_not_started_are_pending_after_their_agent_has_exited() -> None:
    exited_node = replace(stopped_node(1, starting_rank(2), starting_rank(3)), process=exited_process(2.0, 0))
    status = compute_status(mpi_job(), Status(), facts_with_wrong_world(exited_node), 1e10)

    assert ranks_by_state(status) == {"Failed": "0-1", "Pending": "2-3"}
    assert status.message == f"{WRONG_WORLD}; 2 others were not started"


def test_the_message_names_no_rank_before_all_nodes_have_reported() -> None:
    """Hydra kills all ranks, and the report about the rank that failed first arrives last."""
    second_node = running_node(1, rank(2), rank(3))
    early_status = compute_status(
        mpi_job(),
        Status(),
        facts(running_node(0, rank_after_sigkill(0, 1.02), rank_after_sigkill(1, 1.02)), second_node),
        START + 1.1,
    )
    current = facts(
        head_node(
            rank_after_sigkill(0, 1.02),
            rank_after_sigkill(1, 1.02),
            launcher=exited_mpirun(1.1, 9, lines=HYDRA_RANK_KILLED),
        ),
        stopped_node(1, rank_after_sigkill(2, 1.0), rank_after_sigkill(3, 1.01)),
    )

    assert early_status.phase == "Stopping"
    assert (
        early_status.message == "2 of 4 ranks were killed or failed; the first one is known once all nodes have ended"
    )
    assert compute_status(mpi_job(), early_status, current, START + 2).message.startswith(
        "Rank 2 on digits-1 was killed by SIGKILL"
    )


def test_the_message_names_a_rank_that_failed_with_an_error_at_once() -> None:
    failed_rank = exited_rank(1, 1.0, exit_code=1, lines=("KeyError: 0",))
    status = compute_status(
        mpi_job(),
        Status(),
        facts(running_node(0, rank(0), failed_rank), running_node(1, rank(2), rank(3))),
        START + 1.1,
    )

    assert status.message == "Rank 1 on digits-0 failed with exit code 1: KeyError: 0; 3 others were still running"
