"""The bodies of simulated agents' reports. The agent's own code encodes a report once; numbers are then filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from muster_worker.agent.reports import Observation, Snapshot, encode_report, make_report
from muster_worker.agent.state import LauncherRecord, NodeState, RankRecord
from muster_worker.contract.network import Link
from muster_worker.contract.schema import AgentPhase, Launcher

# Values that occur only once in a report: they are replaced by the fields of a format string.
_NODE, _REPLACEMENT, _ATTEMPT, _SEQUENCE, _STEP = 900_000_001, 900_000_002, 900_000_003, 900_000_004, 900_000_005
_FIRST_RANK = 900_100_000
_NOW = 1_000_000.0
_STARTED_AGE, _ENDED_AGE, _STEP_AGE, _FIRST_STEP_AGE, _FAILED_AGE = (
    100_001.5,
    100_002.5,
    100_003.5,
    100_004.5,
    100_005.5,
)

FAILED_LINES = (
    "Traceback (most recent call last):",
    '  File "train.py", line 71, in <module>',
    "    main()",
    '  File "train.py", line 52, in main',
    "    loss = train_step(model, batch)",
    "RuntimeError: loss is NaN",
)


class Activity(Enum):
    """What the ranks of a node do."""

    WAITING = AgentPhase.READY
    STARTING = "Starting"
    RUNNING = AgentPhase.RUNNING
    RANK_FAILED = "RankFailed"  # one rank has failed, the others still run
    STOPPING = AgentPhase.STOPPING
    STOPPED = "Stopped"  # muster has stopped the ranks
    FAILED = "Failed"  # the launcher has stopped the others after the failure of one rank
    NOT_STARTED = "NotStarted"  # the agent has obeyed a command to end before a start


@dataclass(frozen=True)
class Shape:
    """What decides the form of a node's reports. `failed_rank` is the local rank that has failed, or None."""

    procs: int
    launcher: str
    activity: Activity
    failed_rank: int | None = None


def fill(shape: Shape, numbers: Mapping[str, int | float | str], first_rank: int) -> bytes:
    """Return the body of a report."""
    ranks = {f"rank{local}": first_rank + local for local in range(shape.procs)}
    return (_build_template(shape) % {**numbers, **ranks}).encode("ascii")


def _make_snapshot(state: NodeState, step: int, stepped_at: float, first_stepped_at: float) -> Snapshot:
    """Return a snapshot of a node. Its ranks have completed `step` steps."""
    observation = Observation(
        step=step, stepped_at=stepped_at, first_stepped_at=first_stepped_at, rss_bytes=2**31, busy_seconds=0.2
    )
    failed = replace(observation, last_lines=FAILED_LINES)
    started = (record for record in state.ranks if record.started_at is not None)
    observations = {record.rank: failed if record.exit_code else observation for record in started}
    return Snapshot(state, observations)


@lru_cache(maxsize=256)
def _build_template(shape: Shape) -> str:
    snapshot = _make_snapshot(_make_state(shape), _STEP, _NOW - _STEP_AGE, _NOW - _FIRST_STEP_AGE)
    text = encode_report(make_report(snapshot, _SEQUENCE, _NOW)).decode("ascii")
    text = text.replace("%", "%%").replace("@(", "%(")
    integers = {
        "node": _NODE,
        "replacement": _REPLACEMENT,
        "attempt": _ATTEMPT,
        "sequence": _SEQUENCE,
        "step": _STEP,
        **{f"rank{local}": _FIRST_RANK + local for local in range(shape.procs)},
    }
    for name, value in integers.items():
        text = text.replace(str(value), f"%({name})d")
    ages = {
        "started_age": _STARTED_AGE,
        "ended_age": _ENDED_AGE,
        "step_age": _STEP_AGE,
        "first_step_age": _FIRST_STEP_AGE,
        "failed_age": _FAILED_AGE,
    }
    for name, age in ages.items():
        text = text.replace(str(age), f"%({name}).4f")
    return text


def _make_state(shape: Shape) -> NodeState:
    phases = {
        Activity.WAITING: AgentPhase.READY,
        Activity.STOPPING: AgentPhase.STOPPING,
        Activity.STOPPED: AgentPhase.ENDED,
        Activity.FAILED: AgentPhase.ENDED,
        Activity.NOT_STARTED: AgentPhase.ENDED,
    }
    has_ranks = shape.activity not in (Activity.WAITING, Activity.NOT_STARTED)
    was_stopped = shape.activity in (Activity.STOPPING, Activity.STOPPED)
    return NodeState(
        job_uid="@(job_uid)s",
        node=_NODE,
        replacement=_REPLACEMENT,
        attempt=_ATTEMPT,
        phase=phases.get(shape.activity, AgentPhase.RUNNING),
        address="@(address)s",
        port=29500,
        ping_port=29501,
        interface="eth0",
        interface_why="the route to the collector uses it",
        speed_mbps=100_000,
        links=(Link("eth0", "@(address)s/9", 100_000, to_operator=True),),
        ranks=tuple(_make_record(shape, local) for local in range(shape.procs)) if has_ranks else (),
        launcher=_make_launcher_record(shape),
        stop_began_at=_NOW - _ENDED_AGE if was_stopped else None,
    )


def _make_record(shape: Shape, local: int) -> RankRecord:
    record = RankRecord(_FIRST_RANK + local, local)
    if shape.activity is Activity.STARTING:
        return record
    record = replace(record, pid=4000 + local, started_at=_NOW - _STARTED_AGE)
    if local == shape.failed_rank:
        return replace(record, ended_at=_NOW - _FAILED_AGE, exit_code=1)
    if shape.activity in (Activity.STOPPED, Activity.FAILED):
        stopped = shape.activity is Activity.STOPPED
        return replace(record, ended_at=_NOW - _ENDED_AGE, signal=15, stopped=stopped)
    return record


def _make_launcher_record(shape: Shape) -> LauncherRecord | None:
    if shape.launcher == Launcher.DIRECT or shape.activity not in (Activity.STOPPED, Activity.FAILED):
        return None
    signal = 15 if shape.activity is Activity.STOPPED else None
    return LauncherRecord(shape.launcher, _NOW - _ENDED_AGE, exit_code=None if signal else 1, signal=signal)
