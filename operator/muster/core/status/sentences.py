"""The status' message: one sentence."""

from muster.api.amounts import amount, capital, share
from muster.api.spec.job import Job
from muster.api.status.status import Progress
from muster.api.timestamps import to_seconds
from muster.api.validation.rules.mpi.rules import is_runner
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure import rank_output
from muster.core.failure.failure import Failure
from muster.core.failure.mpi_ends import may_be_overtaken
from muster.core.failure.problems import NODE_SILENT, POD_DELETED
from muster.core.judge import (
    DEADLINE_EXCEEDED,
    NETWORK_MISMATCH,
    STARTUP_TIMEOUT,
    STOP_REQUESTED,
    WORLD_SIZE_MISMATCH,
    Verdict,
    ranks_seen,
)
from muster.core.meeting import mismatch
from muster.core.status.failure_sentence import MAX_RANGE_CHARS, asked_for, bystanders, failure_sentence
from muster.core.status.network_check import check_of
from muster.core.status.problems import MAX_NAMES, shared_problems
from muster.core.status.progress import stragglers
from muster.core.status.ranges import ranges
from muster.core.status.released import released
from muster.core.status.views import PENDING, RUNNING, STARTING, SUCCEEDED, UNKNOWN, Picture, RankView
from muster.core.world import is_mpi
from muster_worker.contract.schema import AgentPhase

MAX_BYTES = 1024
"""The longest message, in UTF-8: it is a column in `kubectl get` and a line in events."""

_NO_STEP_WORDS = {
    "NotPython": "not Python",
    "PythonIsolated": "Python that ignores its environment",
    "NotHooked": "Python without muster's hook",
    "NoTorch": "torch is not imported",
    "TorchTooOld": "torch is older than 2.0",
}
"""The agents' reasons in words; a newer agent's reason is shown unchanged."""


def sentence(picture: Picture, progress: Progress | None) -> str:
    """Describe the current state, or how the job ended, in one line of at most `MAX_BYTES`."""
    if picture.outcome.verdict is Verdict.SUSPENDED:
        return fit(_suspended(picture))
    if picture.outcome.is_decided:
        return fit(ended(picture, progress))
    # The refusal matters only before the start.
    if picture.facts.refusal is not None and not picture.outcome.started:
        return fit(picture.facts.refusal.message)
    if any(view.state not in (PENDING, STARTING) for view in picture.views):
        return fit(running(picture, progress))
    if any(view.state == STARTING for view in picture.views):
        start = f"The ranks start: 0 of {len(picture.views)} run" if len(picture.views) > 1 else "The rank starts"
        return fit(_with_problems(start, picture.facts))
    return fit(released(picture) or _waiting(picture.facts, len(picture.views)))


def fit(text: str) -> str:
    """Make `text` one clean line that is short enough for the status."""
    line = rank_output.clean(text, limit=MAX_BYTES)
    if len(line.encode()) <= MAX_BYTES:
        return line
    kept = line.encode()[: MAX_BYTES - len("…".encode())]
    return f"{kept.decode(errors='ignore').rstrip()}…"


def ended(picture: Picture, progress: Progress | None) -> str:
    """Describe how a job ended, or is about to end."""
    outcome, world = picture.outcome, len(picture.views)
    if outcome.failure is not None:
        return _failed(picture, outcome.failure)
    if outcome.verdict is Verdict.SUCCEEDED:
        who = f"All {world} ranks" if world > 1 else "The rank"
        return "; ".join([f"{who} succeeded{_at_step(progress)}", *_kept(picture.facts)])
    if outcome.reason == WORLD_SIZE_MISMATCH:
        return _mismatch(picture.job, picture.facts)
    if outcome.reason == NETWORK_MISMATCH:
        return mismatch(picture.facts.nodes) or "The nodes' networks don't lead to each other"
    if outcome.reason == STARTUP_TIMEOUT:
        seconds = picture.job.spec.startup_timeout_seconds
        who = "Not all nodes were ready" if picture.job.spec.nodes > 1 else "The node was not ready"
        return f"{who} within startupTimeoutSeconds ({seconds} s){_separated(picture.facts)}"
    return f"{_cut_short(picture, progress)}; {bystanders(picture.views, 'rank')}"


def _failed(picture: Picture, failure: Failure) -> str:
    if may_be_overtaken(picture.job, picture.facts, failure.first):
        return _open(picture.views)
    return failure_sentence(picture.job, failure, picture.views)


def _open(views: tuple[RankView, ...]) -> str:
    """Some ranks have ended, and it isn't known yet which was the first."""
    bad = sum(view.end is not None and not view.end.is_good for view in views)
    text = capital(share(bad, len(views), "rank", "was killed or failed", "were killed or failed"))
    return f"{text}; the first one is known once all nodes have ended"


def _suspended(picture: Picture) -> str:
    if picture.outcome.settled:
        return "Suspended: set spec.suspend to false to start the job again"
    return f"Being suspended; {bystanders(picture.views, 'rank')}"


def _cut_short(picture: Picture, progress: Progress | None) -> str:
    request = picture.facts.stop_request
    if picture.outcome.reason == STOP_REQUESTED and request is not None:
        return f"Stopped by {rank_output.clean(request.by, limit=64)}{_at_step(progress)}"
    if picture.outcome.reason == DEADLINE_EXCEEDED:
        seconds = picture.job.spec.active_deadline_seconds
        return f"Stopped{_at_step(progress)} because activeDeadlineSeconds ({seconds} s) has passed"
    if picture.outcome.reason == POD_DELETED:
        return "The pod that failed was deleted before the job had ended"
    if len(picture.views) == 1:
        return "The node ended, but its rank did not report how"
    nodes, whose = ("All nodes", "the") if picture.job.spec.nodes > 1 else ("The node", "its")
    return f"{nodes} ended, but not all of {whose} {len(picture.views)} ranks reported how"


def _mismatch(job: Job, facts: JobFacts) -> str:
    ranks = ranks_seen(job, facts)
    which = f" ({ranges(ranks, MAX_RANGE_CHARS)})" if ranks else ""
    when = " when mpirun ended with exit code 0" if is_mpi(job) else ""
    text = f"{asked_for(job)}, {len(ranks) or 'none'} {'was' if len(ranks) == 1 else 'were'} seen{which}{when}"
    # muster only sees ranks without its wrapper while they run, and may miss short ones.
    unwrapped = is_mpi(job) and not ranks and is_runner(job.spec.command[0])
    return f"{text}; if they ran, remove mpirun from spec.command, so that muster starts it" if unwrapped else text


def running(picture: Picture, progress: Progress | None) -> str:
    """Describe what the ranks do once some have started."""
    views = picture.views
    parts = [capital(share(_count(views, RUNNING), len(views), "rank", "runs", "run"))]
    if progress is not None and progress.step is not None:
        pace = f", {progress.steps_per_second:g} steps/s" if progress.steps_per_second is not None else ""
        parts.append(f"step {progress.step}{pace}")
        if progress.slowest_rank is not None:
            behind = stragglers(picture)[progress.slowest_rank]
            parts.append(f"rank {progress.slowest_rank} is {amount(behind, 'step')} behind")
    else:
        parts.extend(_why_no_steps(views))
    for state, text in ((STARTING, "starting"), (SUCCEEDED, "done")):
        ranks = [view.rank for view in views if view.state == state]
        if ranks:
            parts.append(f"{len(ranks)} {text} ({ranges(ranks, MAX_RANGE_CHARS)})")
    parts.extend(_kept(picture.facts))
    check = check_of(picture.facts.nodes) if picture.job.spec.network.check else None
    if check is not None and check.slow:
        more = f" and {check.slow_count - MAX_NAMES} more" if check.slow_count > MAX_NAMES else ""
        parts.append(f"slow network: {', '.join(one.name for one in check.slow[:MAX_NAMES])}{more}")
    unknown = _count(views, UNKNOWN)
    if unknown:
        parts.append(f"{unknown} unknown: {_silence(picture)}")
    shared = shared_problems(picture.facts.nodes, len(picture.facts.nodes))
    # The silent nodes have been named already.
    parts.extend(entry.sentence for entry in shared if not unknown or entry.problem.reason != NODE_SILENT)
    return "; ".join(parts)


def _with_problems(text: str, facts: JobFacts) -> str:
    return "; ".join([text, *(entry.sentence for entry in shared_problems(facts.nodes, len(facts.nodes)))])


def _kept(facts: JobFacts) -> list[str]:
    """The nodes that upload results to S3."""
    agents = ((node, node.current_agent) for node in facts.nodes)
    busy = [node for node, agent in agents if agent is not None and agent.report.phase == AgentPhase.UPLOADING]
    return [f"{_names(busy)} {'uploads' if len(busy) == 1 else 'upload'} files to S3"] if busy else []


def _why_no_steps(views: tuple[RankView, ...]) -> list[str]:
    reasons = sorted({view.no_step_reason for view in views if view.no_step_reason})
    return [f"no step count ({_NO_STEP_WORDS.get(reasons[0], reasons[0])})"] if reasons else []


def _silence(picture: Picture) -> str:
    silent = [node for node in picture.facts.nodes if picture.facts.is_silent(node, picture.now)]
    mute = [node for node in picture.facts.nodes if node.is_mute]
    if mute and not silent:
        return f"{_names(mute)} {'has' if len(mute) == 1 else 'have'} not reported yet"
    if not silent:
        alone = _count(picture.views, UNKNOWN) == 1
        return f"{'its node' if alone else 'their nodes'} ended without a report about {'it' if alone else 'them'}"
    heard_at = min(node.agent.heard_at for node in silent if node.agent is not None)
    return f"{_names(silent)} {'has' if len(silent) == 1 else 'have'} not reported since {to_seconds(heard_at)}"


def _is_silent(node: NodeFacts) -> bool:
    problem = node.process.problem
    return problem is not None and problem.reason == NODE_SILENT


def _waiting(facts: JobFacts, world: int) -> str:
    ready = sum(node.is_ready and not _is_silent(node) for node in facts.nodes)
    if ready == len(facts.nodes):
        who = f"All {ready} nodes are ready" if ready > 1 else "The node is ready"
        return _with_problems(f"{who}; {'the rank is' if world == 1 else 'the ranks are'} about to start", facts)
    if len(facts.nodes) == 1:
        return _missing(facts)
    return f"{share(ready, len(facts.nodes), 'node', 'is ready', 'are ready')}{_separated(facts)}"


def _separated(facts: JobFacts) -> str:
    """Which nodes are not ready, as a part of another sentence; a problem contains a colon itself."""
    has_problem = any(node.process.problem is not None and not node.is_ready for node in facts.nodes)
    return f"{'; ' if has_problem else ': '}{_missing(facts)}"


def _missing(facts: JobFacts) -> str:
    """Which nodes are not ready, and why."""
    waiting = [node for node in facts.nodes if not node.is_ready or _is_silent(node)]
    calm = [node for node in waiting if node.process.problem is None]
    absent = [node for node in calm if node.process.state is ProcessState.MISSING]
    unplaced = [node for node in calm if node.process.state is ProcessState.WAITING and not node.is_placed]
    begun = [node for node in calm if node.process.state is ProcessState.WAITING and node.is_placed]
    there = [node for node in calm if node.process.state in (ProcessState.RUNNING, ProcessState.EXITED)]
    mute = [node for node in there if node.current_agent is None]
    busy = [node for node in there if node.current_agent is not None]
    parts = [entry.sentence for entry in shared_problems(waiting, len(facts.nodes))]
    parts += [
        f"{_names(nodes)} {one if len(nodes) == 1 else many}"
        for nodes, one, many in (
            (absent, "does not exist yet", "do not exist yet"),
            (unplaced, "waits to be scheduled", "wait to be scheduled"),
            (begun, "is starting", "are starting"),
            (mute, "has not reported", "have not reported"),
            (busy, "is not ready", "are not ready"),
        )
        if nodes
    ]
    return "; ".join(parts) if parts else "the last became ready too late"


def _names(nodes: list[NodeFacts]) -> str:
    names = [node.name for node in nodes[:MAX_NAMES]]
    more = len(nodes) - len(names)
    if more:
        return f"{', '.join(names)} and {more} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _at_step(progress: Progress | None) -> str:
    return f" at step {progress.step}" if progress is not None and progress.step is not None else ""


def _count(views: tuple[RankView, ...], state: str) -> int:
    return sum(view.state == state for view in views)
