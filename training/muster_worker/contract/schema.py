"""The wire format between the operator and the agents: plan, report, command.

The operator writes one `Plan` for a job, the same for all its nodes. Each agent sends `Report`s, snapshots of all it
knows of its node, and receives `Command`s. All three are JSON objects whose keys are the fields' names below.

A report is a whole snapshot and not a difference, so that a lost, doubled or late one does no harm: the one with the
highest (replacement, attempt, sequence) is the truth. Times travel as ages, in seconds before the sending, measured
on the agent's monotonic clock: the receiver subtracts them from its own clock, so that nodes' clocks need not agree.

`wire.py` turns these types into JSON and back. Standard library only, Python 3.8 and later: the agent runs in the
user's image.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple, Union

VERSION = 1
"""Raised when an older agent could misread a plan or a command."""

MAX_REPORT_BYTES = 1024 * 1024
"""The collector refuses a larger body. 128 ranks with full tails of ASCII stay under it, others lose old lines."""

MAX_LAST_LINES = 8
"""Lines of a rank's standard error that a report carries."""

MAX_LINE_CHARS = 512
"""Characters of each of those lines; longer ones end in an ellipsis."""

MAX_ACTIVITY_CHARS = 120
"""Characters of what a rank was in: part of one sentence in the job's status."""

MAX_METRICS = 256
"""Metrics of one node: the 40 of the resource and what scripts report themselves, with room."""

TOKEN_AUDIENCE = "muster-collector"
"""The audience that an agent's token must name; no other service accepts such a token."""

UNUSABLE_PYTHON = "muster's agent can't run on this python3: "
"""What stands in the termination log, with the reason after it, when the image's Python is none for the agent."""

MAX_LINKS = 16
"""Links of a node that a report carries: the network cards of a large machine, the best ones first."""

Scalar = Union[str, int, float, bool]
Order = Tuple[int, int, int]
"""A command's (term, attempt, index of its kind): a higher one overrides a lower one."""


class Launcher:
    """How a node's ranks are started (`spec.launcher`)."""

    TORCHRUN = "torchrun"
    DIRECT = "direct"
    PER_NODE = "perNode"
    MPI = "mpi"


class Mpi:
    """Whose `mpirun` an MPI job means (`spec.launcher.mpi.implementation`)."""

    AUTO = "Auto"  # ask it
    OPEN_MPI = "OpenMPI"  # 4 and 5
    INTEL_MPI = "IntelMPI"
    MPICH = "MPICH"
    ALL = (AUTO, OPEN_MPI, INTEL_MPI, MPICH)

    RUNNERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun")
    """Names of the programs that start a world: a command of that base name is an mpirun of the user's own."""


class AgentPhase:
    """Where an agent stands in its attempt."""

    READY = "Ready"  # waits for Start; address and port are known
    RUNNING = "Running"  # the launcher is started and not all of its processes are gone
    STOPPING = "Stopping"  # told to stop; some process is still there
    UPLOADING = "Uploading"  # no process of the attempt is left; what its ranks left is brought to S3
    ENDED = "Ended"  # no process of the attempt is left on this node, and nothing else is to be done
    ALL = (READY, RUNNING, STOPPING, UPLOADING, ENDED)


class RankState:
    """What an agent knows of a rank. What it means (failed, stopped, ...) is decided by the operator."""

    STARTING = "Starting"
    RUNNING = "Running"
    EXITED = "Exited"
    ALL = (STARTING, RUNNING, EXITED)


class EndReason:
    """Why a rank or a launcher ended, where its exit code or signal alone does not tell."""

    COMMAND_NOT_FOUND = "CommandNotFound"  # nothing has the command's name
    COMMAND_NOT_EXECUTABLE = "CommandNotExecutable"  # something has, and can't be run
    WRAPPER_LOST = "WrapperLost"  # who watched the rank was killed, and nobody saw the rank's own end
    OOM_KILLED = "OOMKilled"  # the kernel killed it: the node's memory limit was reached
    WORLD_SIZE_MISMATCH = "WorldSizeMismatch"  # its launcher gave it another world than the job asked for
    ALL = (COMMAND_NOT_FOUND, COMMAND_NOT_EXECUTABLE, WRAPPER_LOST, OOM_KILLED, WORLD_SIZE_MISMATCH)


class CommandKind:
    """What an agent is told. The order is the order within an attempt: a later kind overrides an earlier one."""

    START = "Start"  # start the attempt's ranks
    STOP = "Stop"  # SIGTERM, `grace_seconds`, SIGKILL
    KILL = "Kill"  # SIGKILL at once
    EXIT = "Exit"  # the agent leaves; whatever still runs is killed
    ALL = (START, STOP, KILL, EXIT)


@dataclass(frozen=True)
class Channel:
    """One of `spec.inputs`: the folder `input/data/<name>` under the node's root."""

    name: str
    content_type: Optional[str] = None
    is_sharded: bool = False  # each node has its share of the data


@dataclass(frozen=True)
class Metric:
    """A value read from the ranks' output: `regex`'s first group, a decimal number."""

    name: str
    regex: str


@dataclass(frozen=True)
class Plan:
    """What every agent of a job is told before it starts; the same bytes for every node."""

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
    collector_ca: str  # PEM; the only certificates the agent trusts
    mpi: str = Mpi.AUTO  # one of `Mpi`; read by launcher `mpi` alone
    network_check: bool = False  # measure the network before the ranks are started
    has_code: bool = False  # the agent runs in the folder of the job's own code

    @property
    def world_size(self) -> int:
        return self.nodes * self.procs_per_node


@dataclass(frozen=True)
class RankReport:
    """What is known of one rank. `exit_code` and `signal` exclude each other; both are None until it ended."""

    rank: int
    local_rank: int
    state: str
    pid: Optional[int] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    started_age: Optional[float] = None
    ended_age: Optional[float] = None
    stopped: bool = False  # it ended after this agent had begun to stop the node's ranks
    reason: Optional[str] = None  # an EndReason; None: an ordinary end
    last_lines: Tuple[str, ...] = ()  # of standard error, or of standard output when there was none
    step: Optional[int] = None
    step_age: Optional[float] = None
    no_step_reason: Optional[str] = None  # why there is no step count: "PythonIsolated", "NotPython", ...
    activity: Optional[str] = None  # what its main thread was in when it was stopped or fell: "all_reduce", "backward"
    rss_bytes: Optional[int] = None  # of a rank that a signal has ended: the most it ever had


@dataclass(frozen=True)
class MetricValue:
    """The latest value of a metric on a node."""

    name: str
    value: float
    rank: int
    age: float


@dataclass(frozen=True)
class LauncherEnd:
    """How the node's launcher (torchrun, the node's command) ended; `direct` has none."""

    name: str
    age: float
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None  # an EndReason; None: an ordinary end
    last_lines: Tuple[str, ...] = ()
    stopped: bool = False  # it ended after this agent had begun to stop the node's ranks


@dataclass(frozen=True)
class AgentProblem:
    """What keeps an agent from working: one CamelCase word, and a sentence for the job's owner."""

    reason: str
    message: str


@dataclass(frozen=True)
class Link:
    """A network that a node is on: one address of an interface, and what speaks for it."""

    interface: str
    address: str  # with its prefix length: 10.79.0.11/16
    speed_mbps: int = 0  # 0: the driver doesn't say
    rdma: bool = False  # an EFA or InfiniBand device belongs to the interface
    to_operator: bool = False  # the node reaches the operator over it


@dataclass(frozen=True)
class NetworkFigures:
    """What a node's network check found: the better of its partners each way; None where none was measured."""

    sent_mbps: Optional[float] = None
    received_mbps: Optional[float] = None
    round_trip_us: Optional[float] = None
    problem: Optional[str] = None  # what could not be measured, for people


@dataclass(frozen=True)
class Report:
    """All that one agent knows, at one moment."""

    job_uid: str
    node: int
    replacement: int
    attempt: int  # 0 until the first Start
    sequence: int  # rises with every report of an agent process
    phase: str
    address: Optional[str] = None
    port: Optional[int] = None  # free on all addresses, held for this job: the rendezvous when this is node 0
    check_port: Optional[int] = None  # another one, for the network check
    interface: Optional[str] = None
    interface_why: Optional[str] = None  # why it is this one, for people
    speed_mbps: int = 0  # of `interface`; 0: the driver doesn't say
    links: Tuple[Link, ...] = ()  # where it may be met: the agent's own choice first, then what its owner left open
    figures: Optional[NetworkFigures] = None  # once the network check is over
    ranks: Tuple[RankReport, ...] = ()
    metrics: Tuple[MetricValue, ...] = ()
    launcher: Optional[LauncherEnd] = None
    problem: Optional[AgentProblem] = None
    terminated_age: Optional[float] = None  # since a signal or the end of its parent, no command, made the agent stop
    dropped_lines: int = 0  # log lines given up because nobody read the agent's output


@dataclass(frozen=True)
class ReportAnswer:
    """The collector's answer to a report: how long to wait before the next one when nothing happens."""

    heartbeat_seconds: float


@dataclass(frozen=True)
class Peer:
    """A node of the rank group, and where it is met."""

    node: int
    address: str
    port: int
    interface: Optional[str] = None  # the node's own name for it
    check_port: Optional[int] = None


@dataclass(frozen=True)
class Credentials:
    """What the agents of one attempt know each other by: a certificate that they share, and trust, and its key."""

    certificate: str  # PEM, self-signed
    key: str = field(repr=False)  # PEM


@dataclass(frozen=True)
class Command:
    """What an agent has to do now. An agent refuses any whose `order` is not above the last one it obeyed."""

    leader_term: int  # the Lease's transitions: a deposed operator's commands are lower
    job_uid: str
    attempt: int
    kind: str
    peers: Tuple[Peer, ...] = ()  # of Start, ordered by node
    grace_seconds: float = 0.0  # of Stop
    credentials: Optional[Credentials] = field(default=None, repr=False)  # of Start, where agents call each other

    @property
    def order(self) -> Order:
        return (self.leader_term, self.attempt, CommandKind.ALL.index(self.kind))
