"""Small builders for the facts of a job: nodes, ranks and their ends."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from muster.api.launchers.direct import Direct
from muster.api.launchers.mpi import Mpi
from muster.api.spec.job import Job, Metadata, Spec
from muster.api.spec.launcher import LauncherSpec
from muster.api.status.status import Status
from muster.core.decide import decide
from muster.core.fact_completion import complete_facts
from muster.core.facts import (
    AgentFacts,
    JobFacts,
    LauncherFacts,
    MetricFacts,
    NodeFacts,
    ProcessFacts,
    ProcessState,
    RankFacts,
    StopRequest,
)
from muster.core.judge import judge
from muster.core.problem import Problem
from muster.core.status.summarise import summarise
from muster_worker.contract.error_text import RankError
from muster_worker.contract.schema import (
    AgentPhase,
    AgentProblem,
    Command,
    CommandKind,
    LauncherEnd,
    MetricValue,
    Peer,
    RankReport,
    RankState,
    Report,
)
from unit.core.message_rules import check_messages

T0 = 1_763_697_900.0  # 2025-11-21T04:05:00Z: the time of the job's creation
START = T0 + 5  # the time of the ranks' start
UID = "3a5c"
HEARTBEAT_SECONDS = 5.0


def job(nodes: int = 2, procs: int = 2, startup: int = 900, deadline: int | None = None) -> Job:
    spec = Spec(
        nodes=nodes,
        procs_per_node=procs,
        launcher=LauncherSpec(direct=Direct()),
        command=("python", "train.py"),
        startup_timeout_seconds=startup,
        active_deadline_seconds=deadline,
    )
    return Job(metadata=Metadata(name="digits", uid=UID, generation=3), spec=spec)


def with_spec(current: Job, **changes: object) -> Job:
    """Return the same job with these fields of its spec changed."""
    return current.model_copy(update={"spec": current.spec.model_copy(update=changes)})


def mpi_job(nodes: int = 2, procs: int = 2, deadline: int | None = None) -> Job:
    return with_spec(job(nodes, procs, deadline=deadline), launcher=LauncherSpec(mpi=Mpi()))


def rank(
    number: int,
    local_rank: int = 0,
    step: int | None = None,
    highest_step_at: float | None = None,
    last_step_at: float | None = None,
) -> RankFacts:
    """Return a running rank. With `highest_step_at` it has completed a step in this attempt."""
    report = RankReport(number, local_rank, RankState.RUNNING, pid=1000 + number, step=step)
    return RankFacts(
        report,
        started_at=START,
        highest_step_at=highest_step_at,
        last_step_at=last_step_at,
        first_step_at=highest_step_at,
    )


def starting_rank(number: int) -> RankFacts:
    return RankFacts(RankReport(number, 0, RankState.STARTING), started_at=START)


def exited_rank(
    number: int,
    at: float,
    exit_code: int | None = None,
    signal: int | None = None,
    lines: Sequence[str] = (),
    step: int | None = None,
    activity: str | None = None,
    reason: str | None = None,
    *,
    stopped: bool = False,
) -> RankFacts:
    """Return a rank that exited `at` seconds after the start."""
    report = RankReport(
        number,
        0,
        RankState.EXITED,
        pid=1000 + number,
        exit_code=exit_code,
        signal=signal,
        last_lines=tuple(lines),
        step=step,
        activity=activity,
        reason=reason,
        stopped=stopped,
    )
    return RankFacts(report, started_at=START, ended_at=START + at)


def rank_without_peer(number: int, at: float, activity: str | None = None, step: int | None = None) -> RankFacts:
    """Return a rank that failed because it lost its peer."""
    line = "RuntimeError: [../gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:43121"
    lines = ("Traceback (most recent call last):", line)
    return exited_rank(number, at, exit_code=1, lines=lines, activity=activity, step=step)


def stopped_rank(number: int, at: float, activity: str | None = None, step: int | None = None) -> RankFacts:
    """Return a rank that muster stopped."""
    return exited_rank(number, at, signal=15, activity=activity, step=step, stopped=True)


def with_error(facts: RankFacts, at: float, text: str, *, uncaught: bool = True, printed: bool = False) -> RankFacts:
    """Return the rank with an error that it raised `at` seconds after the start."""
    report = replace(facts.report, error=RankError(text, 0.0, uncaught and not printed, printed))
    return replace(facts, report=report, error_at=START + at)


def exited_launcher(
    at: float,
    exit_code: int | None = None,
    signal: int | None = None,
    lines: Sequence[str] = (),
    name: str = "torchrun",
    *,
    stopped: bool = False,
) -> LauncherFacts:
    end = LauncherEnd(name, 0.0, exit_code=exit_code, signal=signal, last_lines=tuple(lines), stopped=stopped)
    return LauncherFacts(end, START + at)


def command(kind: str, grace: float = 0.0, nodes: int = 2) -> Command:
    peers = tuple(Peer(node, f"127.0.0.{node + 1}", 29400 + node) for node in range(nodes))
    return Command(1, UID, 1, kind, peers if kind == CommandKind.START else (), grace)


def running_process() -> ProcessFacts:
    return ProcessFacts(ProcessState.RUNNING, started_at=T0)


def exited_process(
    at: float, exit_code: int | None = None, signal: int | None = None, problem: Problem | None = None
) -> ProcessFacts:
    """Return a node's process that exited `at` seconds after the start."""
    return ProcessFacts(ProcessState.EXITED, 0, exit_code, signal, T0, START + at, problem)


def agent(
    number: int,
    phase: str,
    ranks: Iterable[RankFacts] = (),
    reported_at: float = 0.0,
    launcher: LauncherFacts | None = None,
    problem: str | None = None,
    metrics: Iterable[tuple[str, float, int, float]] = (),
) -> AgentFacts:
    """Return an agent whose last report came `reported_at` seconds after the start. `problem` is a message."""
    ranks = tuple(ranks)
    report = Report(
        job_uid=UID,
        node=number,
        replacement=0,
        attempt=0 if phase == AgentPhase.READY else 1,
        sequence=1,
        phase=phase,
        address=None if problem else f"127.0.0.{number + 1}",
        port=None if problem else 29400 + number,
        ranks=tuple(entry.report for entry in ranks),
        launcher=launcher.end if launcher else None,
        problem=AgentProblem("NoInterface", problem) if problem else None,
    )
    values = tuple(MetricFacts(MetricValue(name, value, who, 0.0), START + at) for name, value, who, at in metrics)
    return AgentFacts(report, START + reported_at, ranks, values, launcher)


def node(
    number: int,
    facts: AgentFacts | None = None,
    process: ProcessFacts | None = None,
    sent_command: Command | None = None,
    final_since: float | None = None,
) -> NodeFacts:
    process = process or running_process()
    return NodeFacts(
        number, f"digits-{number}", process, facts, sent_command, None if final_since is None else START + final_since
    )


def missing_node(number: int) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.MISSING, replacement=-1))


def ready_node(number: int) -> NodeFacts:
    return node(number, agent(number, AgentPhase.READY))


def running_node(
    number: int, *ranks: RankFacts, reported_at: float = 0.0, launcher: LauncherFacts | None = None
) -> NodeFacts:
    return node(
        number, agent(number, AgentPhase.RUNNING, ranks, reported_at, launcher), sent_command=command(CommandKind.START)
    )


def finished_node(number: int, *ranks: RankFacts, launcher: LauncherFacts | None = None) -> NodeFacts:
    """Return a node whose ranks all ended without a stop command."""
    return node(
        number, agent(number, AgentPhase.ENDED, ranks, launcher=launcher), sent_command=command(CommandKind.START)
    )


def stopped_node(number: int, *ranks: RankFacts, launcher: LauncherFacts | None = None) -> NodeFacts:
    """Return a node that received Stop and whose ranks have ended."""
    return node(
        number, agent(number, AgentPhase.ENDED, ranks, launcher=launcher), sent_command=command(CommandKind.STOP, 2.0)
    )


def facts(*nodes: NodeFacts, stop: StopRequest | None = None) -> JobFacts:
    return JobFacts(T0, nodes, HEARTBEAT_SECONDS, stop)


def compute_status(job: Job, previous: Status, facts: JobFacts, now: float) -> Status:
    """Return the status that follows `previous`. Raises AssertionError if a message breaks a rule."""
    facts = complete_facts(job, previous, facts, now)
    outcome = judge(job, previous, facts, now)
    return check_messages(summarise(job, previous, facts, outcome, decide(job, facts, outcome, now, 1), now))


def ranks_by_state(status: Status) -> dict[str, str]:
    assert status.ranks is not None
    return {entry.state: entry.ranks for entry in status.ranks.by_state}


def ctrl_c_request(at: float, grace: float = 10.0) -> StopRequest:
    return StopRequest(START + at, "Ctrl-C", grace)


def with_sigterm(current: NodeFacts, at: float, final_since: float | None = None) -> NodeFacts:
    """Return the same node, whose agent got a SIGTERM `at` seconds after the start that muster did not send.

    `final_since` is the time at which muster sent its last command.
    """
    assert current.agent is not None
    command_sent_at = None if final_since is None else START + final_since
    return replace(current, agent=replace(current.agent, terminated_at=START + at), command_sent_at=command_sent_at)


def without_reports(current: NodeFacts) -> NodeFacts:
    """Return the same node, without a report since the job's creation."""
    assert current.agent is not None
    return replace(current, agent=replace(current.agent, last_report_at=T0))
