"""Import a TrainJob (trainer.kubeflow.org/v1alpha1) with its runtime. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.importers.kubernetes.autoscaler import add_autoscaler
from muster.importers.kubernetes.context import Context
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.job_builder import PodJob, write_job
from muster.importers.kubernetes.kinds.job_set import (
    POD_HOST,
    STEP_LABEL,
    ReplicatedJob,
    combine_limits,
    write_restart_scope,
)
from muster.importers.kubernetes.kinds.runtime_patches import apply_overrides, read_overrides
from muster.importers.kubernetes.kinds.trainer import Trainer, apply_trainer, read_trainer
from muster.importers.kubernetes.kinds.training_runtime import (
    LAUNCHER,
    NODE,
    TRAINER_STEP,
    MpiPolicy,
    Runtime,
    read_runtime,
)
from muster.importers.kubernetes.launch.procs import Procs, has_devices
from muster.importers.kubernetes.launch.world import World
from muster.importers.kubernetes.metadata import read_metadata
from muster.importers.kubernetes.mpi_pods import MpiJob, write_mpi_job
from muster.importers.kubernetes.node_index import COMPLETION_INDEX
from muster.importers.kubernetes.old_hosts import report_old_hosts
from muster.importers.kubernetes.pod_template import PodTemplate, get_resources
from muster.importers.kubernetes.report import Location
from muster.importers.kubernetes.restarts import make_policy
from muster.importers.kubernetes.run_policy import check_manager
from muster.importers.kubernetes.scheduling import write_queue, write_suspend

_GROUP = "trainer.kubeflow.org"
_CLUSTER_KIND = "ClusterTrainingRuntime"
_KINDS = (_CLUSTER_KIND, "TrainingRuntime")
_CONTROLLERS = ("trainer.kubeflow.org/trainjob-controller",)


@dataclass(frozen=True)
class _TrainJob:
    """A TrainJob and its runtime, with the template of its nodes."""

    spec: Fields
    trainer: Trainer
    runtime: Runtime
    suspend: bool | None
    jobs: dict[str, ReplicatedJob]
    nodes: int
    nodes_location: Location


def import_train_job(root: Fields, context: Context) -> Draft | None:
    """Return the job of a TrainJob: the runtime's template with the TrainJob's values."""
    draft = Draft(read_metadata(root))
    spec = root.take_fields("spec")
    runtime = _find_runtime(spec.take_fields("runtimeRef"), context)
    spec.refuse("initializer", "muster has no such step; use spec.inputs or an init container, and remove it")
    trainer = read_trainer(spec.take_fields("trainer"))
    deadline = spec.locate("activeDeadlineSeconds")
    draft.set("activeDeadlineSeconds", spec.take_integer("activeDeadlineSeconds", 1), deadline)
    suspend = spec.take_boolean("suspend")
    check_manager(spec, _CONTROLLERS)
    labels, annotations = spec.take_text_map("labels"), spec.take_text_map("annotations")
    overrides = read_overrides(spec)
    if runtime is None:
        return None
    jobs = _choose_jobs(runtime, root)
    if jobs is None:
        return None
    for override in overrides:
        jobs = apply_overrides(jobs, override, root.report)
    jobs = {
        name: replace(job, job=replace(job.job, template=_add_metadata(job.job.template, labels, annotations)))
        for name, job in jobs.items()
    }
    nodes, location = (trainer.nodes, trainer.nodes_location) if trainer.nodes else (None, runtime.nodes_location)
    train_job = _TrainJob(
        spec=spec,
        trainer=trainer,
        runtime=runtime,
        suspend=suspend,
        jobs=jobs,
        nodes=nodes or runtime.nodes or 1,
        nodes_location=location,
    )
    draft.set("queue", dict(runtime.queue), runtime.queue_location)
    is_complete = _write_torch(draft, train_job) if runtime.mpi is None else _write_mpi(draft, train_job, runtime.mpi)
    report_old_hosts(draft, POD_HOST, root.report)
    return draft if is_complete else None


def _find_runtime(ref: Fields, context: Context) -> Runtime | None:
    ref.take_choice("apiGroup", (_GROUP,))
    kind = ref.take_choice("kind", _KINDS) or _CLUSTER_KIND
    name = ref.take_text("name")
    if name is None:
        ref.report.add(ref.locate("name"), "missing, and required: the runtime's name")
        return None
    document = context.runtimes.get((kind, name))
    if document is None:
        ref.report.add(
            ref.locate("name"),
            f"the {kind} {name} is needed: set --runtime FILE; `kubectl get {kind.lower()} {name} -o yaml` prints it",
        )
        return None
    return read_runtime(context.reading.open(document))


def _choose_jobs(runtime: Runtime, root: Fields) -> dict[str, ReplicatedJob] | None:
    """Return the replicated jobs that train, by name; None with a problem."""
    location = runtime.fields.locate("template", "spec", "replicatedJobs")
    names = (NODE, LAUNCHER) if runtime.mpi is not None else (NODE,)
    training = {
        job.name: job for job in runtime.jobs if job.name in names or job.labels.get(STEP_LABEL) == TRAINER_STEP
    }
    others = [job.name for job in runtime.jobs if job.name not in training]
    if others:
        root.report.add(
            location,
            f"found {', '.join(others)}, which runs before the training; a job has no such step: use spec.inputs or an "
            "init container, and remove it from the runtime",
        )
    if not training:
        root.report.add(location, "found no job that trains, whose name is node or whose label is trainer")
    if others or not training or any(job.job.template is None for job in training.values()):
        return None
    for job in training.values():
        job.job.fields.ignore("activeDeadlineSeconds", "the TrainJob's activeDeadlineSeconds applies")
        job.job.fields.ignore("ttlSecondsAfterFinished", "muster deletes the job as a whole")
    return training


def _add_metadata(
    template: PodTemplate | None, labels: dict[str, JSON], annotations: dict[str, JSON]
) -> PodTemplate | None:
    if template is None:
        return None
    return replace(template, labels={**template.labels, **labels}, annotations={**template.annotations, **annotations})


def _write_torch(draft: Draft, job: _TrainJob) -> bool:
    report = job.spec.report
    only = job.jobs.get(NODE) or next(iter(job.jobs.values()))
    if only.job.template is None or len(job.jobs) > 1:
        report.add(job.spec.locate("runtimeRef"), "the runtime has several jobs that train; 1 is expected")
        return False
    template = apply_trainer(only.job.template, job.trainer, NODE)
    index = template.find_container(NODE) or 0
    resources = get_resources(template.containers[index])
    value, location = job.trainer.procs, job.trainer.procs_location
    if value is None:
        value, location = job.runtime.procs or "auto", job.runtime.procs_location
    elastic = job.runtime.elastic
    world = World(
        nodes=job.nodes if elastic is None else elastic.minimum or job.nodes,
        nodes_location=job.nodes_location,
        procs=Procs(value, location, _count_cpus(resources)),
        resources=resources,
        sets_torchrun=job.runtime.is_torch,
    )
    if elastic is not None and job.trainer.nodes is not None:
        world = replace(world, nodes=job.trainer.nodes)
    limit = combine_limits(only, job.runtime.set_policy)
    if elastic is not None and elastic.restarts is not None:
        limit = elastic.restarts
    suspend_location = job.spec.locate("suspend")
    pod_job = PodJob(template, (NODE,), world, job.suspend, suspend_location, limit, only.job.rules, COMPLETION_INDEX)
    if write_job(draft, pod_job, report) is None:
        return False
    _write_elastic(draft, job, world.nodes)
    write_restart_scope(draft, job.runtime.set_policy)
    return True


def _write_elastic(draft: Draft, job: _TrainJob, nodes: int) -> None:
    elastic = job.runtime.elastic
    if elastic is None:
        return
    minimum = elastic.minimum or elastic.maximum or nodes
    maximum = elastic.maximum or minimum
    draft.set("elastic", {"minNodes": minimum, "maxNodes": maximum}, elastic.location)
    if draft.get("failurePolicy") is None:
        draft.set("failurePolicy", {"maxRestarts": 0}, elastic.location)
    if elastic.metrics:
        add_autoscaler(draft, elastic.metrics, (minimum, maximum), elastic.location.child("metrics"), job.spec.report)


def _count_cpus(resources: dict[str, JSON]) -> int | None:
    """Return the number of CPUs, which Trainer takes for auto and cpu without a GPU; None if it isn't whole."""
    text = str(resources.get("cpu", ""))
    return int(text) if re.fullmatch("[1-9][0-9]{0,3}", text) and not has_devices(resources) else None


def _write_mpi(draft: Draft, job: _TrainJob, policy: MpiPolicy) -> bool:
    report = job.spec.report
    launcher = job.jobs.get(LAUNCHER) or next(iter(job.jobs.values()))
    node = job.jobs.get(NODE) or launcher
    if launcher.job.template is None or node.job.template is None:
        return False
    nodes_template = apply_trainer(node.job.template, replace(job.trainer, command=None, args=None), NODE)
    name = NODE if launcher.job.template.find_container(NODE) is not None else LAUNCHER
    launcher_template = apply_trainer(launcher.job.template, job.trainer, name)
    if node is launcher:
        nodes_template = launcher_template
    procs: JSON = job.trainer.procs or job.runtime.procs or 1
    location = job.trainer.procs_location if job.trainer.procs else job.runtime.procs_location
    index, launcher_index = nodes_template.find_container(NODE) or 0, launcher_template.find_container(name) or 0
    if not isinstance(procs, int):
        report.add(location, f"found {procs}; a whole number is expected for mpi")
        return False
    devices = read_mapping(nodes_template.containers[index].get("resources"))
    count = read_mapping(devices.get("limits")).get("nvidia.com/gpu")
    if procs == 1 and str(count).isdigit():  # Trainer takes the number of GPUs for 1
        procs = max(1, int(str(count)))
    write_queue(draft, draft.metadata, nodes_template, report)
    write_suspend(draft, job.spec.locate("suspend"), report, suspend=job.suspend)
    limit = combine_limits(launcher, job.runtime.set_policy)
    draft.set("failurePolicy", make_policy(limit, launcher.job.rules, report), job.spec.location)
    mpi_job = MpiJob(
        launcher=launcher_template,
        launcher_index=launcher_index,
        worker=nodes_template,
        index=index,
        nodes=job.nodes,
        nodes_location=job.nodes_location,
        slots=procs,
        slots_location=location,
        implementation=policy.implementation,
    )
    return write_mpi_job(draft, mpi_job, report)
