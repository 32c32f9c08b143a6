"""The resource's spec as types. The CRD in `crds/` is generated from these, descriptions and all."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from muster.api import node_ranges
from muster.api.agent_spec import Agent
from muster.api.data_spec import Checkpoint, Input, Output
from muster.api.failure_policy import FailurePolicy
from muster.api.launcher_spec import LauncherSpec
from muster.api.model import FREE, KubernetesObject, Model
from muster.api.node_pool import NodePool
from muster.api.node_ranges import NodeRanges
from muster.api.queue import Queue
from muster.api.sagemaker_spec import SageMaker
from muster.api.source_spec import Source

MAX_HYPERPARAMETERS = 100
MAX_QUANTITIES = 32

Hyperparameters = Annotated[
    dict[str, str | int | float | bool],
    Field(max_length=MAX_HYPERPARAMETERS),
    WithJsonSchema({"type": "object", "maxProperties": MAX_HYPERPARAMETERS, FREE: True}),
]
"""A schema has no word for text, number or truth value: muster refuses the rest itself. A map without a schema for its
values still is one that CEL can compare."""

Quantities = Annotated[
    dict[str, str | int | float],
    Field(max_length=MAX_QUANTITIES),
    WithJsonSchema({"type": "object", "maxProperties": MAX_QUANTITIES, FREE: True}),
]
"""As in a container. A schema's int-or-string would refuse the 0.5 that a container takes."""

Argument = Annotated[str, Field(max_length=32768)]
"""One word of a command line. Linux allows 128 KiB; a longer script belongs in a file."""

MAX_DEADLINE_SECONDS = 31_536_000
"""A year: longer is a typing error."""

MAX_METRICS = 40
"""Metrics of one job: each takes a line of the status, and of what people read."""

MAX_WORLD = 100_000
"""Ranks of one job. The rank store and the status are sized for it."""


class EnvVar(Model):
    """An environment variable of every rank."""

    name: str = Field(
        description="The variable's name: letters, digits, _ . and -, not beginning with a digit.",
        pattern=r"^[A-Za-z_.-][A-Za-z0-9_.-]*$",
        max_length=256,
    )
    value: str = Field(default="", description="Its value. Secrets belong in valueFrom.", max_length=32768)
    value_from: KubernetesObject | None = Field(
        default=None,
        description="Where the value comes from instead, as in a container: secretKeyRef, configMapKeyRef, fieldRef or "
        "resourceFieldRef. With `muster run` the variable is taken from your own environment.",
    )


class Metric(Model):
    """A number read from the ranks' output."""

    name: str = Field(description="The metric's name in status.progress.metrics.", min_length=1, max_length=63)
    regex: str = Field(description="A regular expression; its first group is the number.", min_length=1, max_length=500)


class Resources(Model):
    """What the container of each node asks for, as in a container."""

    limits: Quantities = Field(default_factory=dict, description="At most this, by resource: 8, 0.5, 500m, 64Gi.")
    requests: Quantities = Field(default_factory=dict, description="At least this; unset: the limits.")
    claims: tuple[KubernetesObject, ...] = Field(
        default=(), description="Claims of dynamic resource allocation.", max_length=32
    )


class NodeOverride(Model):
    """Where some nodes differ."""

    nodes: str = Field(
        description="Which, as ranges: 0 or 0-3,7.", pattern=r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$", max_length=256
    )
    template: KubernetesObject = Field(description="A partial pod template, merged after spec.template.")

    @cached_property
    def ranges(self) -> NodeRanges:
        """`nodes`, parsed once: every pod of the job asks for it."""
        return node_ranges.parse(self.nodes)


class Network(Model):
    """The network between the ranks."""

    interface: str = Field(
        default="Auto",
        description="Which interface the ranks use: Auto (the way to the operator, or a better network that all nodes "
        "share), names (eth1) and prefixes (ib*), of which the first that a node has counts, prefixes to leave out "
        "(^docker,lo), or an address range (10.0.0.0/16, fd00::/8).",
        min_length=1,
        max_length=256,
    )
    efa: Literal["Auto", "All", "None"] = Field(
        default="Auto",
        description="Which of a machine's EFA devices a node gets. Auto: all, where the job has several nodes and each "
        "takes its machine's GPUs or Neuron chips whole.",
    )
    check: bool = Field(
        default=False,
        description="Measure the network between the nodes before the ranks start, which takes some seconds. A node "
        "that is 10 times slower than the median is named in the status and in an event; the job goes on.",
    )


class Spec(Model):
    """What the job is and how it runs."""

    backend: Literal["Kubernetes", "SageMaker"] = Field(
        default="Kubernetes",
        description="Who runs it when it is applied to a cluster: its pods, or Amazon SageMaker. `muster run` runs it "
        "here.",
    )
    suspend: bool = Field(
        default=False,
        description="Stop the ranks and give up the pods; false again starts the job anew. Meanwhile the whole spec "
        "may change.",
    )
    nodes: int = Field(default=1, description="How many nodes the job runs on.", ge=1, le=10000)
    procs_per_node: Literal["Auto"] | Annotated[int, Field(ge=1, le=128)] = Field(
        default="Auto", description="Ranks on each node; Auto: one for each of its GPUs or Neuron cores, else 1."
    )
    launcher: LauncherSpec = Field(description="How the ranks are started: exactly one of its fields.")
    image: str | None = Field(
        default=None,
        description="The image of the ranks' container. Unset: the one of container `trainer` in template.",
        min_length=1,
        max_length=1024,
    )
    command: Annotated[tuple[Argument, ...], Field(min_length=1, max_length=256)] = Field(
        description="The training command. The image's entry point is not used."
    )
    source: Source | None = Field(default=None, description="Code that isn't in the image; unset: all of it is.")
    env: Annotated[tuple[EnvVar, ...], Field(max_length=256)] = Field(
        default=(), description="Environment of the ranks. Variables of the rendezvous are refused."
    )
    resources: Resources = Field(default_factory=Resources, description="What the container of each node asks for.")
    hyperparameters: Hyperparameters = Field(
        default_factory=dict,
        description="Text, numbers and truth values: appended to the command as --name value, and given as SM_HPS and "
        "SM_HP_<NAME>.",
    )
    metrics: Annotated[tuple[Metric, ...], Field(max_length=MAX_METRICS)] = Field(
        default=(), description="Numbers read from the ranks' output."
    )
    inputs: Annotated[tuple[Input, ...], Field(max_length=20)] = Field(
        default=(), description="Channels: the data that the ranks read."
    )
    output: Output | None = Field(default=None, description="Where models and other results are kept.")
    checkpoint: Checkpoint | None = Field(default=None, description="Where snapshots are kept.")
    node_pool: NodePool | None = Field(
        default=None, description="The machines that the nodes run on; unset: any that have what the pods ask for."
    )
    queue: Queue | None = Field(
        default=None, description="Who admits the job as a whole; unset: the cluster's scheduler places pod by pod."
    )
    network: Network = Field(default_factory=Network, description="The network between the ranks.")
    agent: Agent = Field(default_factory=Agent, description="How muster's agent gets into the pods.")
    startup_timeout_seconds: int = Field(
        default=900,
        description="How long the nodes may take until all are ready, once all are placed; and how long some of them "
        "may hold their places while others find none.",
        ge=1,
        le=86400,
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        description="How long the job may take, from its creation or last resume; unset: no limit.",
        ge=1,
        le=MAX_DEADLINE_SECONDS,
    )
    failure_policy: FailurePolicy | None = Field(
        default=None, description="What is done about failures; unset: a job that failed is over."
    )
    clean_pod_policy: Literal["Running", "All", "None"] = Field(
        default="Running",
        description="Which pods are deleted when the job is over: those that still run, all, or none.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        description="The resource is deleted so long after the end, and all that muster made for the job with it. "
        "Unset: never. GitOps tools create a deleted resource again, and the job runs again.",
        ge=0,
        le=MAX_DEADLINE_SECONDS,
    )
    template: KubernetesObject = Field(
        default_factory=dict,
        description="A partial pod template: labels, service account, pull secrets, sidecars, volumes. Its container "
        "`trainer` is the ranks'. Merged, never replaced.",
    )
    node_overrides: Annotated[tuple[NodeOverride, ...], Field(max_length=64)] = Field(
        default=(), description="Where some nodes differ: later ones win."
    )
    sagemaker: SageMaker | None = Field(
        default=None, description="What only Amazon SageMaker needs to know; used with backend: SageMaker."
    )


class Metadata(Model):
    """The part of Kubernetes' metadata that muster reads; the rest is Kubernetes' own."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    name: str = Field(description="A DNS label of at most 40 characters.", max_length=40)
    namespace: str = Field(default="default", description="The namespace.")
    uid: str = Field(default="", description="Given by the API server.")
    generation: int = Field(default=1, description="Given by the API server.")
    creation_timestamp: str = Field(
        default="", alias="creationTimestamp", description="Given by the API server (RFC 3339)."
    )


class Job(Model):
    """A DistributedTrainingJob as the code sees it: valid, with every default filled in."""

    metadata: Metadata
    spec: Spec
