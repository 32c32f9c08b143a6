"""What has to be done now for a job: the one decision that every backend carries out."""

from collections.abc import Sequence

from muster.api.spec.job import Job
from muster.core.actions import Action, CreateNode, KillNode, SendCommand
from muster.core.clean_up import clean_up, expires_at, kill_lost, remove_outdated, remove_released, remove_strays
from muster.core.deadlines import active_deadline, startup_deadline
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.lost_nodes import lost_at
from muster.core.failure.mpi_ends import launcher_has_ended
from muster.core.failure.problems import unreachable_at
from muster.core.gang_release import release_at
from muster.core.judge import Outcome, Verdict
from muster.core.meeting import meet
from muster_worker.contract.schema import AgentPhase, Command, CommandKind

FAILURE_GRACE_SECONDS = 2.0
"""From SIGTERM to SIGKILL once a rank failed: the others can't go on, and their devices are wanted."""

STOP_GRACE_SECONDS = 10.0
"""From SIGTERM to SIGKILL when the time is up or somebody asks for it, and the node has no grace of its own.

Healthy ranks may want to write a snapshot.
"""

LEAST_GRACE_SECONDS = 1.0
"""However little a pod's owner gives it: ranks are asked before they are killed."""

HUNG_SECONDS = 10.0
"""How long an agent may take, beyond the grace, to do what it was told; then its process is killed."""


def decide(job: Job, facts: JobFacts, outcome: Outcome, now: float, leader_term: int) -> tuple[Action, ...]:
    """The actions that bring the job further; none when all is as it should be. `now` is in Unix seconds.

    `outcome` is what `judge` says of these facts. `leader_term` numbers the operator's time as leader: commands of an
    earlier one are refused by agents. Deciding again on facts that show the actions applied gives nothing new.
    """
    strays = (*remove_strays(facts), *kill_lost(facts))
    if outcome.is_decided:
        return (*strays, *_end(job, facts, outcome, now, leader_term), *clean_up(job, facts, outcome, now))
    # Create nothing for a job of which a part is refused.
    if facts.refusal is not None and not outcome.started:
        return strays
    # Delete pods of an earlier spec: none of them has started its ranks.
    if facts.outdated and not outcome.started:
        return (*strays, *remove_outdated(facts))
    release = outcome.release
    # Release the nodes of half a gang: others can use them.
    if release is not None and release.is_under_way(facts, now):
        return (*strays, *remove_released(facts, release))
    missing = tuple(node for node in facts.nodes if node.process.state is ProcessState.MISSING)
    # Start needs the addresses of all nodes, so create the missing ones first.
    if missing:
        lowest = 0 if release is None else release.replacement
        return (*strays, *(CreateNode(node.node, max(lowest, node.process.replacement + 1)) for node in missing))
    can_start = _can_start(facts, outcome, now)
    return (
        *strays,
        *(_start(job, facts, outcome, leader_term) if can_start else _close(job, facts, outcome, now, leader_term)),
    )


def next_wake(job: Job, facts: JobFacts, outcome: Outcome, now: float) -> float | None:
    """When time alone, without a new fact, may change the decision or the status; None: never."""
    # A job that was resumed while it was being suspended is suspended completely first.
    if outcome.verdict is Verdict.SUSPENDED and outcome.settled and not job.spec.suspend:
        return now
    times = [at for node in facts.nodes for at in (facts.silent_at(node), lost_at(node, facts))]
    if outcome.is_decided:
        times.append(expires_at(job, outcome))
        times.extend(_killed_at(facts, outcome, node) for node in facts.nodes if not node.is_gone)
    else:
        if not outcome.started:
            times += [startup_deadline(job, facts, outcome.began_at), release_at(job, facts)]
            times.append(None if outcome.release is None else outcome.release.until)
        times.append(active_deadline(job, outcome.began_at))
        times.extend(unreachable_at(node, facts) for node in facts.nodes)
        times.extend(_killed_at(facts, outcome, node) for node in facts.nodes if not node.is_gone)
    return min((at for at in times if at is not None and at > now), default=None)


def _can_start(facts: JobFacts, outcome: Outcome, now: float) -> bool:
    """Whether all nodes are there, and some wait for Start: all, or those that an operator did not come to tell."""
    waiting = [node for node in facts.nodes if not node.has_started]
    if not waiting or not all(node.is_ready and not facts.is_silent(node, now) for node in waiting):
        return False
    # A restarted operator hears of running ranks one node at a time; the addresses of all are needed.
    return not outcome.started or bool(meet(facts.nodes))


def _start(job: Job, facts: JobFacts, outcome: Outcome, leader_term: int) -> tuple[Action, ...]:
    waiting = tuple(node.node for node in facts.nodes if not node.has_started)
    command = Command(leader_term, job.metadata.uid, outcome.attempt, CommandKind.START, meet(facts.nodes))
    return (SendCommand(waiting, command),)


def _close(job: Job, facts: JobFacts, outcome: Outcome, now: float, leader_term: int) -> tuple[Action, ...]:
    """Once mpirun is over, bring nodes to an end that only wait for it: how it went is judged when all have told."""
    # What is left of mpirun on its own node its agent ends by itself, and those that ended are asked to leave later.
    if not launcher_has_ended(job, facts) or not facts.nodes[0].has_ended:
        return ()
    waiting = [node for node in facts.nodes[1:] if node.current_agent is not None and not node.has_ended]
    command = _ending_command(job, outcome, CommandKind.STOP, FAILURE_GRACE_SECONDS, leader_term)
    return _send_where_needed(facts, outcome, [(node, command) for node in waiting], now)


def _end(job: Job, facts: JobFacts, outcome: Outcome, now: float, leader_term: int) -> tuple[Action, ...]:
    """Bring every node that is still there to its end."""
    wanted = []
    for node in facts.nodes:
        grace = grace_seconds(node, facts, outcome)
        wanted.append((node, _ending_command(job, outcome, _ending_kind(node, grace), grace, leader_term)))
    return _send_where_needed(facts, outcome, wanted, now)


def _send_where_needed(
    facts: JobFacts, outcome: Outcome, wanted: Sequence[tuple[NodeFacts, Command]], now: float
) -> tuple[Action, ...]:
    """Tell nodes what they weren't told yet, and kill those that don't do it."""
    kills: list[Action] = []
    fields: dict[Command, list[int]] = {}
    for node, command in wanted:
        # The agent of this pod has not started, so there is no one to send a command to.
        if node.process.state is not ProcessState.RUNNING:
            continue
        killed_at = _killed_at(facts, outcome, node)
        # An agent gets the time to do what it was told last.
        if not _is_told(node, command):
            fields.setdefault(command, []).append(node.node)
        elif killed_at is not None and now >= killed_at:
            kills.append(KillNode(node.node, f"its agent did not end within {HUNG_SECONDS:.0f} s"))
    return (*kills, *(SendCommand(tuple(nodes), command) for command, nodes in fields.items()))


def _ending_command(job: Job, outcome: Outcome, kind: str, grace: float, leader_term: int) -> Command:
    return Command(
        leader_term=leader_term,
        job_uid=job.metadata.uid,
        attempt=outcome.attempt,
        kind=kind,
        grace_seconds=grace if kind == CommandKind.STOP else 0.0,
    )


def _ending_kind(node: NodeFacts, grace: float) -> str:
    agent = node.current_agent
    # Nothing of the job runs there.
    if agent is None or node.has_ended or agent.report.phase == AgentPhase.READY:
        return CommandKind.EXIT
    # Ctrl-C was pressed twice: kill at once.
    if grace <= 0:
        return CommandKind.KILL
    return CommandKind.STOP


def grace_seconds(node: NodeFacts, facts: JobFacts, outcome: Outcome) -> float:
    """From SIGTERM to SIGKILL for the node's ranks that still run; 0: SIGKILL at once."""
    own = node.process.grace_seconds
    healthy = STOP_GRACE_SECONDS if own is None else max(LEAST_GRACE_SECONDS, own)
    grace = healthy if outcome.failure is None else FAILURE_GRACE_SECONDS
    if facts.stop_request is None:
        return grace
    # Who asks for a stop may be in a greater hurry than a failure, never less.
    asked = facts.stop_request.grace_seconds
    return asked if outcome.verdict is Verdict.STOPPED else min(grace, asked)


def _is_told(node: NodeFacts, command: Command) -> bool:
    """Whether the node's last command is this one or a later one, and given in this term: others are refused."""
    last = node.command
    if last is None or last.leader_term < command.leader_term:
        return False
    return (last.attempt, _place(last)) >= (command.attempt, _place(command))


def _place(command: Command) -> int:
    return CommandKind.ALL.index(command.kind)


def _killed_at(facts: JobFacts, outcome: Outcome, node: NodeFacts) -> float | None:
    """When the node's process is killed if it has not ended by then; None while it wasn't told to end."""
    command = node.command
    if command is None or not node.is_told_to_end:
        return None
    agent = node.current_agent
    # No rank is left that could hang, and what they left is worth the time.
    if agent is not None and agent.report.phase == AgentPhase.UPLOADING and command.kind != CommandKind.KILL:
        return None
    heard_at = facts.created_at if agent is None else agent.heard_at
    # A backend that does not know when it gave the command leaves the cause's time, or the node's last word.
    since = next(at for at in (node.commanded_at, outcome.at, heard_at) if at is not None)
    return since + command.grace_seconds + HUNG_SECONDS
