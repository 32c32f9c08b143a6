"""Import an MPIJob (kubeflow.org/v1 and v2beta1). Pure."""

from __future__ import annotations

from muster.importers.kubernetes.context import Context
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.metadata import read_metadata
from muster.importers.kubernetes.mpi_pods import MpiJob, write_mpi_job
from muster.importers.kubernetes.old_hosts import report_old_hosts
from muster.importers.kubernetes.pod_template import choose_container
from muster.importers.kubernetes.replicas import Replica, read_replicas
from muster.importers.kubernetes.restarts import (
    DEFAULT_BACKOFF_LIMIT,
    RestartLimit,
    make_policy,
    note_pod_policy,
    read_replica_policy,
)
from muster.importers.kubernetes.run_policy import RunPolicy, read_run_policy, set_clean_pod_policy
from muster.importers.kubernetes.scheduling import read_scheduling_policy, write_queue, write_suspend

_IMPLEMENTATIONS = {"OpenMPI": "OpenMPI", "Intel": "IntelMPI", "MPICH": "MPICH"}
_CONTROLLERS = ("kubeflow.org/mpi-operator", "kubeflow.org/training-operator")
_CREATION_POLICIES = ("AtStartup", "WaitForWorkersReady")


def import_mpi_job(root: Fields, _: Context) -> Draft | None:
    """Return the job. muster runs mpirun on node 0, so the nodes are the workers."""
    draft = Draft(read_metadata(root))
    spec = root.take_fields("spec")
    policy = read_run_policy(spec, draft, _CONTROLLERS)
    set_clean_pod_policy(spec, draft)  # v1
    slots = spec.take_integer("slotsPerWorker", 1) or 1
    implementation = _IMPLEMENTATIONS.get(spec.take_choice("mpiImplementation", tuple(_IMPLEMENTATIONS)) or "")
    containers = tuple(filter(None, (spec.take_text("mainContainer"),)))  # v1
    runs_on_launcher = _read_launch_fields(spec)
    replicas = read_replicas(spec, "mpiReplicaSpecs", {"Launcher": 1, "Worker": 0})
    launcher, worker = _choose_replicas(replicas, spec)
    if launcher is None or worker is None:
        return None
    nodes = worker.count + (1 if runs_on_launcher and worker is not launcher else 0)
    read_scheduling_policy(policy.fields, nodes, draft, worker.template)
    if launcher.template is None or worker.template is None:
        return None
    templates = (launcher.template, worker.template)
    launcher_index, index = (choose_container(template, containers, root.report) for template in templates)
    if launcher_index is None or index is None:
        return None
    write_queue(draft, draft.metadata, worker.template, root.report)
    write_suspend(draft, policy.fields.locate("suspend"), root.report, suspend=policy.suspend)
    _write_restarts(draft, launcher, worker, policy, is_version_1=root.api_version.endswith("/v1"))
    job = MpiJob(
        launcher=launcher.template,
        launcher_index=launcher_index,
        worker=worker.template,
        index=index,
        nodes=nodes,
        nodes_location=worker.fields.locate("replicas"),
        slots=slots,
        slots_location=spec.locate("slotsPerWorker"),
        implementation=implementation,
    )
    if not write_mpi_job(draft, job, root.report):
        return None
    report_old_hosts(draft, r"(launcher|worker-\d+)", root.report)
    return draft


def _read_launch_fields(spec: Fields) -> bool:
    """Read how mpi-operator starts mpirun; return whether the launcher is a worker, too."""
    spec.ignore("sshAuthMountPath", "muster's agents start mpirun's daemons without ssh")
    if spec.take_choice("launcherCreationPolicy", _CREATION_POLICIES) is not None:
        spec.report.note(spec.locate("launcherCreationPolicy"), "muster starts mpirun when all nodes are ready")
    spec.ignore("waitForWorkers", "muster starts mpirun when all nodes are ready")
    return spec.take_boolean("runLauncherAsWorker") is True


def _choose_replicas(replicas: list[Replica], spec: Fields) -> tuple[Replica | None, Replica | None]:
    by_name = {replica.name: replica for replica in replicas}
    launcher = by_name.get("Launcher")
    if launcher is None:
        spec.report.add(spec.locate("mpiReplicaSpecs", "Launcher"), "missing, and required: the pod that runs mpirun")
        return None, None
    if launcher.count != 1:
        spec.report.add(launcher.fields.locate("replicas"), f"found {launcher.count}; 1 launcher is expected")
    return launcher, by_name.get("Worker", launcher)  # without workers, the launcher runs the ranks


def _write_restarts(draft: Draft, launcher: Replica, worker: Replica, policy: RunPolicy, *, is_version_1: bool) -> None:
    """Translate the launcher's restarts. A worker that ends is lost for mpirun, which ends the job."""
    report = launcher.fields.report
    for replica in {launcher.name: launcher, worker.name: worker}.values():
        if replica.template is not None:
            note_pod_policy(replica.template, report)
    location = launcher.fields.locate("restartPolicy")
    if worker is not launcher and worker.restart_policy not in (None, launcher.restart_policy):
        report.note(worker.fields.locate("restartPolicy"), "the launcher's policy decides, for all ranks together")
    restart_policy = launcher.restart_policy or "Never"
    limit = policy.backoff_limit
    if not is_version_1:
        # The launcher is a batch/v1 Job, which replaces a failed pod also with Never.
        restart_policy = "OnFailure" if restart_policy == "Never" else restart_policy
        limit = limit or RestartLimit(DEFAULT_BACKOFF_LIMIT, location)
    restarts, rules = read_replica_policy(restart_policy, location, limit, report)
    draft.set(
        "failurePolicy", make_policy(restarts, rules, report), location if restarts is None else restarts.location
    )
