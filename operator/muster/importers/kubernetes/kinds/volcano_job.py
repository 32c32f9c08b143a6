"""Import a Volcano Job (batch.volcano.sh/v1alpha1). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.context import Context
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.equal_pods import find_difference
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.job_builder import PodJob, write_job
from muster.importers.kubernetes.kinds.volcano_policies import (
    Policies,
    make_volcano_policy,
    read_policies,
)
from muster.importers.kubernetes.launch.procs import Procs
from muster.importers.kubernetes.launch.world import World
from muster.importers.kubernetes.metadata import read_metadata
from muster.importers.kubernetes.mpi_pods import MpiJob, write_mpi_job
from muster.importers.kubernetes.node_index import NO_INDEX, TASK_INDEX
from muster.importers.kubernetes.old_hosts import report_old_hosts
from muster.importers.kubernetes.pod_template import PodTemplate, choose_container, get_resources, read_template
from muster.importers.kubernetes.report import Location
from muster.importers.kubernetes.restarts import RestartLimit
from muster.importers.kubernetes.run_policy import copy_integer
from muster.importers.kubernetes.scheduling import DEFAULT_QUEUE, VOLCANO, check_minimum, write_queue

_DEFAULT_RETRIES = 3
_PLUGINS = ("env", "svc", "ssh", "pytorch", "mpi")
_MASTER_NAMES = ("master", "launcher", "mpimaster")


@dataclass(frozen=True)
class _Task:
    """A task with its pods. `template` is None if it is invalid."""

    fields: Fields
    name: str
    count: int
    template: PodTemplate | None
    policies: Policies


def import_volcano_job(root: Fields, _: Context) -> Draft | None:
    """Return the job. Its tasks are the nodes of one training, or mpirun's launcher and its workers."""
    draft = Draft(read_metadata(root))
    spec = root.take_fields("spec")
    policies = read_policies(spec)
    plugins = _read_plugins(spec)
    retries = spec.take_integer("maxRetry")
    copy_integer(spec, "ttlSecondsAfterFinished", draft)
    priority = spec.take_text("priorityClassName")
    _read_other_fields(spec)
    tasks = [task for task in map(_read_task, spec.take_entries("tasks")) if task.count > 0]
    total = sum(task.count for task in tasks)
    _check_counts(spec, total)
    scheduler = spec.take_text("schedulerName") or VOLCANO
    queue = spec.take_text("queue") or DEFAULT_QUEUE
    if scheduler == VOLCANO:
        draft.set("queue", {"volcano": queue}, spec.locate("queue" if spec.has("queue") else "schedulerName"))
    if not tasks:
        spec.report.add(spec.locate("tasks"), "missing, and required: the pods")
        return None
    _add_volumes(spec, tasks)
    for task in tasks:
        if task.template is not None:
            _set_pod_defaults(task.template, priority, scheduler)
    if any(task.template is None for task in tasks):
        return None
    all_policies = [policies, *(task.policies for task in tasks)]
    limit = RestartLimit(_DEFAULT_RETRIES if retries is None else retries, spec.locate("maxRetry"))
    is_mpi = "mpi" in plugins or ("ssh" in plugins and len(tasks) == 2)  # noqa: PLR2004 - a launcher and its workers
    is_complete = _write_mpi(draft, tasks) if is_mpi else _write_nodes(draft, tasks, plugins)
    names = "|".join(re.escape(task.name) for task in tasks)
    report_old_hosts(draft, rf"({names})-\d+[\w.-]*", spec.report)
    policy, origin = make_volcano_policy(all_policies, [task.template for task in tasks], limit, spec.report)
    draft.set("failurePolicy", policy, origin)
    return draft if is_complete else None


def _read_plugins(spec: Fields) -> dict[str, list[str]]:
    fields = spec.take_fields("plugins")
    plugins = {name: fields.take_texts(name) for name in _PLUGINS if fields.has(name)}
    for name in fields.names:
        if name not in _PLUGINS:
            fields.refuse(name, f"muster has no such plugin; it replaces {', '.join(_PLUGINS)}")
    if plugins:
        spec.report.note(fields.location, "not needed: muster connects the nodes, and sets the ranks' variables itself")
    return plugins


def _read_other_fields(spec: Fields) -> None:
    spec.ignore("runningEstimate", "muster has no such estimate; the ranks report their progress")
    spec.refuse("networkTopology", "remove it, and set nodePool.sameLabels in the imported job")


def _check_counts(spec: Fields, total: int) -> None:
    minimum, successes = spec.take_integer("minAvailable"), spec.take_integer("minSuccess")
    if minimum is not None and minimum != 0:
        check_minimum(minimum, total, spec.locate("minAvailable"), spec.report)
    if successes is not None and successes != total:
        spec.report.add(
            spec.locate("minSuccess"), f"found {successes} of {total} pods; a job succeeds when all ranks do: remove it"
        )


def _read_task(fields: Fields) -> _Task:
    count = fields.take_integer("replicas")
    minimum = fields.take_integer("minAvailable")
    total = 1 if count is None else count
    if minimum is not None and minimum != total:
        fields.report.add(
            fields.locate("minAvailable"), f"found {minimum} of {total} pods; the ranks start on all: remove it"
        )
    fields.ignore("dependsOn", "muster starts the ranks when all nodes are ready")
    fields.ignore("maxRetry", "muster restarts all ranks together, as the job's maxRetry says")
    fields.refuse("partitionPolicy", "remove it, and set nodePool.sameLabels in the imported job")
    policy = fields.take_choice("topologyPolicy", ("none", "best-effort", "restricted", "single-numa-node"))
    if policy not in (None, "none"):
        fields.report.add(fields.locate("topologyPolicy"), f"found {policy}; a job can't have it: remove it")
    return _Task(fields, fields.take_text("name") or "", total, read_template(fields), read_policies(fields))


def _set_pod_defaults(template: PodTemplate, priority: str | None, scheduler: str) -> None:
    if priority is not None:
        template.pod.setdefault("priorityClassName", priority)
    if scheduler != VOLCANO:
        template.pod.setdefault("schedulerName", scheduler)


def _add_volumes(spec: Fields, tasks: list[_Task]) -> None:
    """Mount the job's claims in every container, as Volcano does."""
    for index, fields in enumerate(spec.take_entries("volumes")):
        path, claim = fields.take_text("mountPath"), fields.take_text("volumeClaimName")
        fields.refuse("volumeClaim", "muster creates no claims; create one, and write volumeClaimName")
        if path is None or claim is None:
            spec.report.add(fields.location, "mountPath and volumeClaimName are expected")
            continue
        name = f"volume-{index}"
        for task in tasks:
            if task.template is not None:
                _mount(task.template, name, path, claim)


def _mount(template: PodTemplate, name: str, path: str, claim: str) -> None:
    volumes, containers = template.pod.get("volumes"), template.pod.get("containers")
    source: dict[str, JSON] = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
    template.pod["volumes"] = [*(volumes if isinstance(volumes, list) else []), source]
    for container in containers if isinstance(containers, list) else []:
        if isinstance(container, dict):
            mounts = container.get("volumeMounts")
            mount: dict[str, JSON] = {"name": name, "mountPath": path}
            container["volumeMounts"] = [*(mounts if isinstance(mounts, list) else []), mount]


def _write_nodes(draft: Draft, tasks: list[_Task], plugins: dict[str, list[str]]) -> bool:
    report = tasks[0].fields.report
    first = tasks[0].template
    if first is None:
        return False
    for other in tasks[1:]:
        difference = None if other.template is None else find_difference(first, other.template)
        if difference is not None:
            report.add(
                difference.location,
                f"differs from the same field of {tasks[0].name}; all nodes of a job have one template: write the same "
                "value, and import again. spec.nodeOverrides can change it for some nodes afterwards",
            )
    index = choose_container(first, (), report)
    if index is None:
        return False
    location = tasks[-1].fields.locate("replicas")
    world = World(
        nodes=sum(task.count for task in tasks),
        nodes_location=location,
        procs=Procs(1, first.pod_location.child("containers", index)),
        resources=get_resources(first.containers[index]),
        sets_ranks="pytorch" in plugins,
    )
    node_index = TASK_INDEX if "env" in plugins and len(tasks) == 1 else NO_INDEX
    job = PodJob(first, (), world, None, draft.metadata.location, None, index=node_index)
    return write_job(draft, job, report) is not None


def _write_mpi(draft: Draft, tasks: list[_Task]) -> bool:
    report = tasks[0].fields.report
    masters = [task for task in tasks if task.name in _MASTER_NAMES or "master" in task.name]
    workers = [task for task in tasks if task not in masters]
    if len(masters) != 1 or len(workers) != 1 or masters[0].count != 1:
        report.add(
            Location(tasks[0].fields.location.document, tasks[0].fields.location.path[:-1]),
            "a master with 1 pod, which runs mpirun, and 1 task of workers are expected",
        )
        return False
    launcher, worker = masters[0].template, workers[0].template
    if launcher is None or worker is None:
        return False
    launcher_index, index = choose_container(launcher, (), report), choose_container(worker, (), report)
    if launcher_index is None or index is None:
        return False
    write_queue(draft, draft.metadata, worker, report)
    launcher.pod.pop("schedulerName", None)
    location = workers[0].fields.locate("replicas")
    job = MpiJob(launcher, launcher_index, worker, index, workers[0].count, location, 1, location, None)
    return write_mpi_job(draft, job, report)
