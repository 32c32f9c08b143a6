"""The resource's status as types (`status` subresource). Written by muster, read by people and machines."""

from typing import Annotated

from pydantic import Field

from muster.api.model import Model
from muster.api.sagemaker_status import BackendStatus
from muster.api.status_rules import MAX_CONDITIONS


class Condition(Model):
    """A Kubernetes condition (metav1.Condition)."""

    type: str = Field(
        description="Accepted, Scheduled, Running, Stalled, Suspended, Complete or Failed.", max_length=64
    )
    status: str = Field(description="True, False or Unknown.", max_length=7)
    reason: str = Field(description="Why, as one CamelCase word.")
    message: str = Field(default="", description="Why, as a sentence.")
    last_transition_time: str = Field(description="When the status last changed (RFC 3339).")
    observed_generation: int = Field(default=0, description="The spec's generation that this speaks of.")


class NodeCounts(Model):
    """How many nodes there are."""

    desired: int = Field(description="Nodes asked for.")
    ready: int = Field(description="Nodes whose agent is ready or running.")


class LinkGroup(Model):
    """Nodes that are met on an interface of the same name, speed and reason."""

    interface: str = Field(description="The interface's name on these nodes.")
    speed_mbps: int | None = Field(default=None, description="Its speed in Mbit/s; unset where the driver doesn't say.")
    why: str = Field(default="", description="Why it is this one.")
    count: int = Field(description="How many nodes.")
    nodes: str = Field(description="Which, as ranges: 0-12,14-31. At most 512 characters, then an ellipsis.")


class NodeLink(Model):
    """Where a node is met."""

    node: int = Field(description="The node's index.")
    interface: str = Field(description="The interface that its ranks use.")
    address: str = Field(description="The address at which the other nodes meet it.")
    speed_mbps: int | None = Field(default=None, description="Its speed in Mbit/s; unset where the driver doesn't say.")
    bandwidth_mbps: float | None = Field(
        default=None, description="What network.check measured, in Mbit/s: sent or received, whichever is less."
    )
    round_trip_microseconds: float | None = Field(
        default=None, description="What network.check measured: the fastest answer of another node."
    )


class SlowNode(Model):
    """A node whose network is much slower than that of the others."""

    node: int = Field(description="The node's index.")
    name: str = Field(description="The node's name.")
    bandwidth_mbps: float = Field(description="What it sends or receives, whichever is less, in Mbit/s.")
    round_trip_microseconds: float = Field(description="The fastest answer of another node.")


class NetworkCheck(Model):
    """What network.check found before the ranks were started."""

    measured: int = Field(description="How many nodes were measured.")
    median_bandwidth_mbps: float | None = Field(default=None, description="Of these nodes, in Mbit/s.")
    median_round_trip_microseconds: float | None = Field(default=None, description="Of these nodes.")
    slow_count: int = Field(description="How many nodes are 10 times slower than the median.")
    slow: tuple[SlowNode, ...] = Field(default=(), description="Which, slowest first; at most 16.")
    message: str = Field(description="All this as a sentence, and what could not be measured.")


class NetworkStatus(Model):
    """The network between the ranks, as the nodes' agents chose it."""

    groups: tuple[LinkGroup, ...] = Field(
        default=(), description="All nodes whose choice is known, largest group first; at most 16 groups."
    )
    nodes: tuple[NodeLink, ...] = Field(default=(), description="Where each node is met; the first 32.")
    check: NetworkCheck | None = Field(
        default=None, description="What network.check found; unset until all nodes have told."
    )


class StateRange(Model):
    """The ranks in one state."""

    state: str = Field(description="Pending, Starting, Running, Succeeded, Failed, Stopped or Unknown.")
    count: int = Field(description="How many ranks.")
    ranks: str = Field(description="Which, as ranges: 0-12,14-31. At most 512 characters, then an ellipsis.")


class RankDetail(Model):
    """A rank with something to say."""

    rank: int = Field(description="The global rank.")
    node: int = Field(description="The node's index.")
    pod: str | None = Field(default=None, description="The node's pod, on a cluster.")
    node_name: str | None = Field(default=None, description="The Kubernetes node that the pod runs on.")
    state: str = Field(description="The rank's state.")
    pid: int | None = Field(default=None, description="The rank's process id on its node.")
    exit_code: int | None = Field(default=None, description="The exit code; unset when a signal ended it.")
    signal: int | None = Field(default=None, description="The number of the signal that ended it.")
    reason: str = Field(description="Why it is in this state, as one CamelCase word.")
    message: str = Field(default="", description="Its last line, or what else is known.")
    step: int | None = Field(default=None, description="Optimizer steps it had taken.")
    activity: str | None = Field(default=None, description="What it was doing: all_reduce, backward, ...")
    at: str | None = Field(default=None, description="When it ended (RFC 3339).")


class StepRange(Model):
    """The ranks that have taken as many optimizer steps."""

    step: int = Field(description="Optimizer steps.")
    ranks: str = Field(description="Which ranks, as ranges. At most 512 characters, then an ellipsis.")


class RankStatus(Model):
    """All ranks."""

    world: int = Field(description="How many ranks the job has.")
    running: int = Field(description="How many run.")
    ready: str = Field(
        description="Running ranks/world, for the RANKS column: 0 of them before the start and after the end."
    )
    by_state: tuple[StateRange, ...] = Field(
        default=(), description="Every rank, by state; the counts add up to world."
    )
    by_step: tuple[StepRange, ...] = Field(
        default=(), description="The ranks' steps, least first: at most 16 groups, those that are furthest behind."
    )
    details: tuple[RankDetail, ...] = Field(
        default=(), description="Ranks with something to say, first failure first; at most 16."
    )


class Progress(Model):
    """How far the job is."""

    step: int | None = Field(
        default=None,
        description="Optimizer steps that every running rank has taken; unset until a rank has taken one.",
    )
    steps_per_second: float | None = Field(default=None, description="The pace over the last steps.")
    slowest_rank: int | None = Field(default=None, description="The rank with the fewest steps.")
    metrics: dict[str, float] = Field(
        default_factory=dict,
        description="The latest value of each metric: at most 64, those of spec.metrics first, then by name.",
    )
    metrics_left_out: int | None = Field(
        default=None, description="How many more metrics there are; unset when all are shown."
    )
    at: str | None = Field(default=None, description="When the step was reached (RFC 3339).")


class Placement(Model):
    """How often the gang gave up the machines that it had, because it could not have all."""

    releases: int = Field(description="How often its pods were given up.", ge=1, le=1_000_000)
    replacement: int = Field(description="Pods with lower replacement numbers were given up.", ge=0, le=1_000_000)
    released_at: str = Field(description="When they last were (RFC 3339).")


class Status(Model):
    """What is known of the job."""

    observed_generation: int = Field(default=0, description="The spec's generation that this status speaks of.")
    phase: str = Field(
        default="Pending",
        description="Pending, Queued, Starting, Running, Restarting, Suspended, Stopping, "
        "Refused, Succeeded or Failed.",
    )
    message: str = Field(default="", description="One sentence: what is going on, or who failed first and how.")
    # bounded, as the CRD's rule about changes looks through them
    conditions: Annotated[tuple[Condition, ...], Field(max_length=MAX_CONDITIONS)] = Field(
        default=(), description="Accepted, Scheduled, Running, Stalled, Suspended, Complete, Failed."
    )
    nodes: NodeCounts | None = Field(default=None, description="How many nodes there are.")
    network: NetworkStatus | None = Field(default=None, description="The network between the ranks.")
    ranks: RankStatus | None = Field(default=None, description="All ranks.")
    progress: Progress | None = Field(default=None, description="How far the job is.")
    placement: Placement | None = Field(
        default=None, description="Set once the gang gave up its pods, as it could not be placed whole."
    )
    backend: BackendStatus | None = Field(default=None, description="What only the job's backend knows of.")
    attempt: int = Field(default=0, description="How often the ranks have been told to start.")
    start_time: str | None = Field(
        default=None, description="When the ranks were told to start (RFC 3339); unset again when the job is suspended."
    )
    completion_time: str | None = Field(default=None, description="When the job ended (RFC 3339).")
