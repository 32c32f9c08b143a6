"""The types of the resource. `make generate` writes the CRD in `crds/` from these types and their descriptions."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from muster.api.backends import BACKENDS, BackendName, BackendTraits
from muster.api.spec import node_ranges
from muster.api.spec.agent import Agent
from muster.api.spec.data import Checkpoint, Input, Output
from muster.api.spec.elastic import Elastic
from muster.api.spec.failure_policy import FailurePolicy
from muster.api.spec.launcher import LauncherSpec
from muster.api.spec.limits import MAX_NODES, MAX_SPARES
from muster.api.spec.model import PRESERVE_UNKNOWN_FIELDS, KubernetesObject, Model
from muster.api.spec.node_pool import NodePool
from muster.api.spec.node_ranges import NodeRanges
from muster.api.spec.queue import Queue
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.source import Source
from muster.api.spec.template_ref import TemplateRef

MAX_HYPERPARAMETERS = 100
MAX_QUANTITIES = 32

Hyperparameters = Annotated[
    dict[str, str | int | float | bool],
    Field(max_length=MAX_HYPERPARAMETERS),
    WithJsonSchema({"type": "object", "maxProperties": MAX_HYPERPARAMETERS, PRESERVE_UNKNOWN_FIELDS: True}),
]
"""A CRD schema can't express "string, number or boolean", so muster validates the values itself.

CEL rules can compare the map, although its values have no schema.
"""

Quantities = Annotated[
    dict[str, str | int | float],
    Field(max_length=MAX_QUANTITIES),
    WithJsonSchema({"type": "object", "maxProperties": MAX_QUANTITIES, PRESERVE_UNKNOWN_FIELDS: True}),
]
"""Quantities as in a container's resources. The schema isn't int-or-string, because that rejects 0.5."""

Argument = Annotated[str, Field(max_length=32768)]
"""One argument of a command. Linux allows 128 KiB; longer scripts belong in a file."""

MAX_DEADLINE_SECONDS = 31_536_000
"""A year. A longer time is probably a mistake."""

MAX_METRICS = 40
"""Maximum number of a job's metrics; `muster status` shows a line for each."""


MAX_TOTAL_STEPS = 1_000_000_000_000
"""More steps than any training has."""


class EnvVar(Model):
    """An environment variable of every rank."""

    name: str = Field(
        description="The variable's name: letters, digits, _ . and -, not beginning with a digit.",
        pattern=r"^[A-Za-z_.-][A-Za-z0-9_.-]*$",
        max_length=256,
    )
    value: str = Field(default="", description="The variable's value. Use valueFrom for secrets.", max_length=32768)
    value_from: KubernetesObject | None = Field(
        default=None,
        description="The value's source, as in a container: secretKeyRef, configMapKeyRef, fieldRef or "
        "resourceFieldRef. `muster run` reads the variable from your own environment.",
    )


class Metric(Model):
    """A number that muster reads from the ranks' output."""

    name: str = Field(description="The metric's name in status.progress.metrics.", min_length=1, max_length=63)
    regex: str = Field(
        description="A regular expression whose first group matches the number.", min_length=1, max_length=500
    )


class Resources(Model):
    """Resource requests and limits of the ranks' container, for each node."""

    limits: Quantities = Field(
        default_factory=dict, description="The maximum quantity of each resource: 8, 0.5, 500m, 64Gi."
    )
    requests: Quantities = Field(
        default_factory=dict, description="The minimum quantity of each resource; by default the limits."
    )
    claims: tuple[KubernetesObject, ...] = Field(
        default=(), description="Claims of dynamic resource allocation.", max_length=32
    )


class NodeOverride(Model):
    """A partial pod template for some nodes."""

    nodes: str = Field(
        description="The node ranks, as ranges: 0 or 0-3,7.",
        pattern=r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$",
        max_length=256,
    )
    template: KubernetesObject = Field(
        description="A partial pod template that muster merges into the pod after spec.template."
    )

    @cached_property
    def ranges(self) -> NodeRanges:
        """The parsed `nodes`, cached because muster uses them to render each pod."""
        return node_ranges.parse(self.nodes)


class Network(Model):
    """The network between the ranks."""

    interface: str = Field(
        default="Auto",
        description="The ranks' network interface: Auto (the interface of the route to the operator, or a faster one "
        "that all nodes have), a list of names (eth1) and prefixes (ib*) whose first match is used, excluded prefixes "
        "(^docker,lo), or an address range (10.0.0.0/16, fd00::/8).",
        min_length=1,
        max_length=256,
    )
    efa: Literal["Auto", "All", "None"] = Field(
        default="Auto",
        description="Which EFA devices each node uses. Auto: all, if the job has several nodes and each uses all GPUs "
        "or Neuron chips of its Kubernetes node; else none.",
    )
    check: bool = Field(
        default=False,
        description="Whether muster measures the network between the nodes for a few seconds before the ranks start. "
        "The status and an event name a node that is 10 times slower than the median; the job continues.",
    )


class Spec(Model):
    """The desired state of the job: its command, its code and data, and how it runs."""

    template_ref: TemplateRef | None = Field(
        default=None,
        description="The template whose values the job takes where it sets none; by default none. muster merges it "
        "into the job when the job is created.",
    )
    backend: BackendName = Field(
        default="Kubernetes",
        description="The platform that runs the job: the Kubernetes cluster, or Amazon SageMaker. `muster run` ignores "
        "this field and runs the job on your machine.",
    )
    suspend: bool = Field(
        default=False,
        description="true: muster stops the ranks and deletes the pods, and the whole spec may change. false: muster "
        "starts the job. The ranks of a suspended job start again, and their script loads its last checkpoint, if any.",
    )
    nodes: int = Field(default=1, description="The number of nodes that the job runs on.", ge=1, le=MAX_NODES)
    spares: int = Field(
        default=0,
        description="The number of hot spares: additional pods that wait with their data and their agent ready. When "
        "muster restarts the job, a spare takes the place of a lost node at once. The job starts and continues without "
        "spares that are not ready.",
        ge=0,
        le=MAX_SPARES,
    )
    elastic: Elastic | None = Field(
        default=None,
        description="The limits of the number of nodes. An elastic job continues with fewer nodes after it loses some, "
        "and `kubectl scale` changes spec.nodes while it runs. By default a job needs all its nodes.",
    )
    procs_per_node: Literal["Auto"] | Annotated[int, Field(ge=1, le=128)] = Field(
        default="Auto", description="The number of ranks on each node. Auto: one per GPU or Neuron core, else 1."
    )
    launcher: LauncherSpec = Field(description="How the ranks start. Exactly one of its fields is set.")
    image: str | None = Field(
        default=None,
        description="The image of the ranks' container; by default the image of container `trainer` in template.",
        min_length=1,
        max_length=1024,
    )
    command: Annotated[tuple[Argument, ...], Field(min_length=1, max_length=256)] = Field(
        description="The training command. The image's entry point is not used."
    )
    source: Source | None = Field(default=None, description="The code that muster adds to the image; by default none.")
    env: Annotated[tuple[EnvVar, ...], Field(max_length=256)] = Field(
        default=(),
        description="Environment variables of the ranks. muster sets the rendezvous variables itself and rejects them "
        "here.",
    )
    resources: Resources = Field(
        default_factory=Resources, description="Resource requests and limits of the ranks' container, for each node."
    )
    hyperparameters: Hyperparameters = Field(
        default_factory=dict,
        description="Strings, numbers and booleans. muster appends them to the command as --name value, and sets "
        "SM_HPS and SM_HP_<NAME>.",
    )
    metrics: Annotated[tuple[Metric, ...], Field(max_length=MAX_METRICS)] = Field(
        default=(), description="Numbers that muster reads from the ranks' output."
    )
    total_steps: int | None = Field(
        default=None,
        description="The number of steps of the whole training, from which muster computes status.progress.percent and "
        "estimatedRemainingSeconds. Scripts that use Transformers' Trainer or muster_worker.report(total_steps=...) "
        "report it themselves.",
        ge=1,
        le=MAX_TOTAL_STEPS,
    )
    inputs: Annotated[tuple[Input, ...], Field(max_length=20)] = Field(
        default=(), description="The channels: the data that the ranks read."
    )
    output: Output | None = Field(default=None, description="Storage for models and other results.")
    checkpoint: Checkpoint | None = Field(default=None, description="Storage for checkpoints.")
    node_pool: NodePool | None = Field(
        default=None, description="The Kubernetes nodes for the job; by default all that satisfy the pods' requests."
    )
    queue: Queue | None = Field(
        default=None,
        description="The scheduler that admits all pods together (gang scheduling). By default, Kubernetes' scheduler "
        "schedules each pod on its own.",
    )
    warm_start: Literal["Auto", "Off"] = Field(
        default="Auto",
        description="Auto: a process on each node imports torch while the node waits, and forks the ranks of each "
        "attempt, if the command is a Python script that uses torch and the launcher is not mpi. Off: each rank "
        "imports torch itself.",
    )
    network: Network = Field(default_factory=Network, description="The network between the ranks.")
    agent: Agent = Field(default_factory=Agent, description="How muster adds its agent to the pods.")
    startup_timeout_seconds: int = Field(
        default=900,
        description="How long the nodes may take to become ready when all pods are scheduled, and how long scheduled "
        "pods may wait for the others to be scheduled.",
        ge=1,
        le=86400,
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        description="How long the job may take from its creation or last resume; by default there is no limit.",
        ge=1,
        le=MAX_DEADLINE_SECONDS,
    )
    failure_policy: FailurePolicy | None = Field(
        default=None, description="When muster restarts a failed job; by default never."
    )
    clean_pod_policy: Literal["Running", "All", "None"] = Field(
        default="Running",
        description="Which pods muster deletes when the job has ended: those that still run, all pods, or none.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        description="How long after the job's end muster deletes the resource and all objects that it created for the "
        "job; by default never. A GitOps tool creates a deleted resource again, and the job runs again.",
        ge=0,
        le=MAX_DEADLINE_SECONDS,
    )
    template: KubernetesObject = Field(
        default_factory=dict,
        description="A partial pod template: labels, service account, pull secrets, sidecars, volumes. The ranks run "
        "in its container `trainer`. muster merges it with the pod that it builds.",
    )
    node_overrides: Annotated[tuple[NodeOverride, ...], Field(max_length=64)] = Field(
        default=(), description="Partial pod templates for some nodes; later entries take precedence."
    )
    sagemaker: SageMaker | None = Field(default=None, description="Settings for backend: SageMaker.")

    @property
    def traits(self) -> BackendTraits:
        """The properties of the job's backend."""
        return BACKENDS[self.backend]

    @property
    def min_nodes(self) -> int:
        """The minimum number of nodes on which an attempt may run its ranks."""
        return self.nodes if self.elastic is None else min(self.nodes, self.elastic.min_nodes)

    @property
    def max_nodes(self) -> int:
        """The maximum number of nodes on which an attempt may run its ranks."""
        return self.nodes if self.elastic is None else max(self.nodes, self.elastic.max_nodes)


class Metadata(Model):
    """The fields of Kubernetes' metadata that muster reads; it ignores the others."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    name: str = Field(description="A DNS label of at most 40 characters.", max_length=40)
    namespace: str = Field(default="default", description="The job's namespace.")
    uid: str = Field(default="", description="Set by the API server.")
    generation: int = Field(default=1, description="Set by the API server.")
    creation_timestamp: str = Field(
        default="", alias="creationTimestamp", description="Set by the API server (RFC 3339)."
    )


class Job(Model):
    """A valid DistributedTrainingJob with all defaults."""

    metadata: Metadata
    spec: Spec
