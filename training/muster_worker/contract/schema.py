"""The protocol between the operator and the agents: plan, report, command.

The operator writes one `Plan` for all nodes of a job. Each agent sends `Report`s with the whole state of its node, and
receives `Command`s. All three are JSON objects; their keys are the names of the fields below.

A report is a complete snapshot, so it may get lost, duplicated or delayed: the one with the highest (replacement,
attempt, sequence) counts. Times are ages in seconds before the report was sent, on the agent's monotonic clock.
`wire.py` encodes and decodes these types. The agent runs in the user's image: Python 3.8+, standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple, Union

from muster_worker.contract.collectives import GroupCollective
from muster_worker.contract.error_text import RankError
from muster_worker.contract.mpi import Mpi
from muster_worker.contract.network import Link, NetworkFigures
from muster_worker.contract.source import EditedSource
from muster_worker.contract.trainer_status import TrainerStatus

VERSION = 1
"""Version of the protocol: increment it if an older agent could misread a plan or a command."""

MAX_REPORT_BYTES = 1024 * 1024
"""The collector rejects larger reports: 128 ranks with full ASCII lines fit. The agent drops old lines if needed."""

MAX_LAST_LINES = 8
"""Maximum number of lines of a rank's standard error in a report."""

MAX_LINE_CHARS = 512
"""Maximum length of a line in a report. The agent shortens longer lines and adds an ellipsis."""

MAX_ACTIVITY_CHARS = 120
"""Maximum length of a rank's activity, which is part of one sentence in the job's status."""

STOPPED_BY_SIGNAL = "stopped by a signal"
STOPPED_BY_DEBUGGER = "stopped by a debugger"
"""The activity of a rank whose process the kernel does not run: states T and t of proc(5)."""

MAX_METRICS = 256
"""Maximum number of metrics of a node: 40 from `spec.metrics`, the others from `muster_worker.report`."""

TOKEN_AUDIENCE = "muster-collector"
"""The required audience of an agent's token. No other service accepts it."""

UNUSABLE_PYTHON = "muster's agent can't run on this python3: "
"""Start of the termination message if the image's Python can't run the agent. The reason follows."""

FENCED = "Fenced"
"""Reason of the problem of an agent that stops its ranks because it is cut off."""

Scalar = Union[str, int, float, bool]
Order = Tuple[int, int, int]
"""A command's (leader term, attempt, index of its kind). A higher order overrides a lower one."""


class Launcher:
    """Name of the launcher: the field of `spec.launcher`."""

    TORCHRUN = "torchrun"
    DIRECT = "direct"
    PER_NODE = "perNode"
    MPI = "mpi"


class AgentPhase:
    """The agent's phase in its attempt."""

    READY = "Ready"  # has an address and a port, waits for Start
    RUNNING = "Running"  # a process of the attempt runs
    STOPPING = "Stopping"  # stopping the processes of the attempt
    UPLOADING = "Uploading"  # all processes have ended; uploads their files to S3
    ENDED = "Ended"  # all processes have ended, all uploads are done
    ALL = (READY, RUNNING, STOPPING, UPLOADING, ENDED)


class RankState:
    """A rank's state in a report. The operator decides what it means (failed, stopped, ...)."""

    STARTING = "Starting"
    RUNNING = "Running"
    EXITED = "Exited"
    ALL = (STARTING, RUNNING, EXITED)


class EndReason:
    """The reason why a rank or a launcher ended, where its exit code or signal does not show it."""

    COMMAND_NOT_FOUND = "CommandNotFound"  # no such file
    COMMAND_NOT_EXECUTABLE = "CommandNotExecutable"  # the file can't be executed
    WRAPPER_LOST = "WrapperLost"  # the rank's wrapper was killed, so the rank's exit status is unknown
    OOM_KILLED = "OOMKilled"  # killed by the kernel at the node's memory limit
    WORLD_SIZE_MISMATCH = "WorldSizeMismatch"  # the launcher's world size differs from the job's
    ALL = (COMMAND_NOT_FOUND, COMMAND_NOT_EXECUTABLE, WRAPPER_LOST, OOM_KILLED, WORLD_SIZE_MISMATCH)


class CommandKind:
    """Kinds of command, in order: a later kind overrides an earlier one of the same attempt."""

    START = "Start"  # start the attempt's ranks
    STOP = "Stop"  # SIGTERM, `grace_seconds`, SIGKILL
    STOP_AT = "StopAt"  # of a graceful Stop: all ranks stop at `stop_call`
    KILL = "Kill"  # SIGKILL at once
    EXIT = "Exit"  # kill all processes and exit the agent
    ALL = (START, STOP, STOP_AT, KILL, EXIT)


@dataclass(frozen=True)
class Channel:
    """An entry of `spec.inputs`: the folder `input/data/<name>` under the node's root."""

    name: str
    content_type: Optional[str] = None
    is_sharded: bool = False  # each node has a part of the data


@dataclass(frozen=True)
class Metric:
    """A metric to read from the ranks' output: the first group of `regex` is a decimal number."""

    name: str
    regex: str


@dataclass(frozen=True)
class Plan:
    """The settings of a job's agents; the same bytes for all nodes.

    `nodes` is the number of the job's nodes. The agent replaces it by the number of members of its attempt.
    """

    version: int
    namespace: str
    job: str
    job_uid: str
    nodes: int
    procs_per_node: int
    launcher: str
    launcher_args: Tuple[str, ...]
    command: Tuple[str, ...]
    hyperparameters: Mapping[str, Scalar]
    channels: Tuple[Channel, ...]
    metrics: Tuple[Metric, ...]
    interface: str
    collector_url: str
    collector_ca: str  # PEM; the only authority that the agent trusts
    mpi: str = Mpi.AUTO  # one of `Mpi`, for launcher `mpi` only
    network_check: bool = False  # measure the network before the ranks start
    has_code: bool = False  # the job's code is in the agent's working directory
    hang_seconds: int = 600  # after this time without a step the agent writes a rank's stacks to its log
    fence_seconds: float = 0.0  # stop the ranks after this time without contact; 0: never
    warm_start: bool = False  # fork the ranks from a process that has imported torch, if possible

    @property
    def world_size(self) -> int:
        return self.nodes * self.procs_per_node


@dataclass(frozen=True)
class RankReport:
    """The state of a rank. At most one of `exit_code` and `signal` is set, after its end."""

    rank: int
    local_rank: int
    state: str
    pid: Optional[int] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    started_age: Optional[float] = None
    ended_age: Optional[float] = None
    stopped: bool = False  # it ended after this agent began to stop the ranks
    reason: Optional[str] = None  # an EndReason, if one applies
    last_lines: Tuple[str, ...] = ()  # of standard error; of standard output if standard error is empty
    step: Optional[int] = None
    step_age: Optional[float] = None
    no_step_reason: Optional[str] = None  # why `step` is None: "PythonIsolated", "NotPython", ...
    activity: Optional[str] = None  # of its main thread when it hung, was stopped or failed: "all_reduce", "backward"
    rss_bytes: Optional[int] = None  # current; the maximum if a signal ended the rank
    phase: Optional[str] = None  # the current phase without steps: `muster_worker.phase("eval")`
    phase_ended_age: Optional[float] = None  # since the end of the last phase
    first_step_age: Optional[float] = None  # since the end of the process's first step
    first_script_step: Optional[int] = None  # the first step from the script; None: `step` counts optimizer steps
    collectives: Tuple[GroupCollective, ...] = ()  # the last of each process group, when the rank hung
    busy_seconds: Optional[float] = None  # median time of a step without waiting for other ranks
    total_steps: Optional[int] = None  # of the whole training, from the script
    mean_steps_per_second: Optional[float] = None  # in the unit of `step`, see `mean_speed.py`
    trainer_status: Optional[TrainerStatus] = None  # of rank 0 only
    error: Optional[RankError] = None  # raised before the agent began to stop the rank; None for a rank that succeeded


@dataclass(frozen=True)
class MetricValue:
    """The latest value of a metric on a node."""

    name: str
    value: float
    rank: int
    age: float


@dataclass(frozen=True)
class LauncherEnd:
    """How the node's launcher (torchrun, mpirun, the command) ended. `direct` has none."""

    name: str
    age: float
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None  # an EndReason, if one applies
    last_lines: Tuple[str, ...] = ()
    stopped: bool = False  # it ended after this agent began to stop the ranks


@dataclass(frozen=True)
class AgentProblem:
    """A problem that stops the agent's work: a CamelCase reason, and a message for the job's owner."""

    reason: str
    message: str


@dataclass(frozen=True)
class Report:
    """The whole state of a node."""

    job_uid: str
    node: int
    replacement: int
    attempt: int  # 0 until the first Start
    sequence: int  # increases with every report of an agent process
    phase: str
    address: Optional[str] = None
    port: Optional[int] = None  # held on all addresses; the rendezvous port if this is node 0
    check_port: Optional[int] = None  # for the network check
    interface: Optional[str] = None
    interface_why: Optional[str] = None  # why the agent chose it
    speed_mbps: int = 0  # of `interface`; 0: unknown
    links: Tuple[Link, ...] = ()  # the agent's choice first, then the other permitted ones
    figures: Optional[NetworkFigures] = None  # after the network check
    ranks: Tuple[RankReport, ...] = ()
    metrics: Tuple[MetricValue, ...] = ()
    launcher: Optional[LauncherEnd] = None
    problem: Optional[AgentProblem] = None
    terminated_age: Optional[float] = None  # since a signal or the parent's exit made the agent stop
    stop_call: Optional[int] = None  # in a graceful stop: the number of a call, see `graceful_stop.py`; 0 after SIGTERM
    dropped_lines: int = 0  # log lines dropped because the agent's output was read too slowly
    ping_port: Optional[int] = None  # UDP port for pings from other nodes
    fence_seconds: float = 0.0  # as in the agent's plan


@dataclass(frozen=True)
class ReportAnswer:
    """The collector's answer to a report: the interval until the next report, unless an event occurs earlier."""

    heartbeat_seconds: float


@dataclass(frozen=True)
class Peer:
    """A member of an attempt, with its address and ports. Its node rank is its position in the Start command."""

    node: int
    address: str
    port: int
    interface: Optional[str] = None  # the interface's name on that node
    check_port: Optional[int] = None
    ping_port: Optional[int] = None


@dataclass(frozen=True)
class Credentials:
    """The TLS identity of all agents of an attempt: one certificate that they share and trust, and its key."""

    certificate: str  # PEM, self-signed
    key: str = field(repr=False)  # PEM


@dataclass(frozen=True)
class Command:
    """An instruction to an agent. The agent ignores a command that is not later than the last one by its `order`."""

    leader_term: int  # the Lease's transitions, which increase with each leader
    job_uid: str
    attempt: int
    kind: str
    peers: Tuple[Peer, ...] = ()  # of Start: the members of the attempt, by node rank
    grace_seconds: float = 0.0  # of Stop and StopAt
    credentials: Optional[Credentials] = field(default=None, repr=False)  # of Start with launcher `mpi`
    is_graceful: bool = False  # of Stop: ranks that call `muster_worker.stopping` get SIGTERM only at the end
    stop_call: int = 0  # of StopAt: the number of the call that returns True first
    ping_key: Optional[str] = field(default=None, repr=False)  # of Start, in hexadecimal, if the agents ping each other
    source: Optional[EditedSource] = None  # of Start; None: the ranks run the job's own code

    @property
    def order(self) -> Order:
        return (self.leader_term, self.attempt, CommandKind.ALL.index(self.kind))
