"""Import a JobSet (jobset.x-k8s.io) with one replicated job. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.context import Context
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.job_builder import PodJob, write_job
from muster.importers.kubernetes.kinds.batch_job import JobTemplate, read_job_spec
from muster.importers.kubernetes.launch.procs import Procs
from muster.importers.kubernetes.launch.world import World
from muster.importers.kubernetes.metadata import read_metadata
from muster.importers.kubernetes.node_index import COMPLETION_INDEX, NO_INDEX, NodeIndex
from muster.importers.kubernetes.old_hosts import report_old_hosts
from muster.importers.kubernetes.pod_template import choose_container, get_resources
from muster.importers.kubernetes.report import Location
from muster.importers.kubernetes.restarts import DEFAULT_BACKOFF_LIMIT, RestartLimit, count_tries
from muster.importers.kubernetes.run_policy import check_manager, copy_integer

_CONTROLLERS = ("jobset.sigs.k8s.io/jobset-controller",)
_STRATEGIES = ("Recreate", "BlockingRecreate", "InPlaceRestart")
POD_HOST = r"[a-z0-9-]+-\d+-\d+[\w.-]*"
"""The host name of a pod after the JobSet's name: the replicated job and two indices."""

STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
"""The label by which Trainer finds the job that trains."""

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


@dataclass(frozen=True)
class ReplicatedJob:
    """A replicated job of a JobSet."""

    fields: Fields
    name: str
    replicas: int
    labels: dict[str, JSON]
    job: JobTemplate


@dataclass(frozen=True)
class SetPolicy:
    """The restarts of a JobSet. `limit` is None if it has no failurePolicy."""

    limit: RestartLimit | None
    restart_scope: str | None
    restart_scope_location: Location


def import_job_set(root: Fields, _: Context) -> Draft | None:
    """Return the job of a JobSet with one replicated job."""
    draft = Draft(read_metadata(root))
    spec = root.take_fields("spec")
    policy = read_set_policies(spec)
    copy_integer(spec, "ttlSecondsAfterFinished", draft)
    suspend = spec.take_boolean("suspend")
    check_manager(spec, _CONTROLLERS)
    jobs = read_replicated_jobs(spec)
    if _EXCLUSIVE in draft.metadata.annotations:
        root.report.add(
            root.locate("metadata", "annotations", _EXCLUSIVE),
            "exclusive placement has no equivalent; remove it, and set nodePool.sameLabels in the imported job",
        )
    if len(jobs) != 1:
        names = ", ".join(job.name for job in jobs) or "none"
        root.report.add(
            spec.locate("replicatedJobs"),
            f"found {len(jobs)} ({names}); all nodes of a job run the same pod: 1 is expected",
        )
        return None
    (only,) = jobs
    _check_targets(spec, only)
    write_deadline(draft, only)
    return _write(draft, only, policy, spec, suspend=suspend)


def _write(draft: Draft, only: ReplicatedJob, policy: SetPolicy, spec: Fields, *, suspend: bool | None) -> Draft | None:
    report = spec.report
    template = only.job.template
    index = None if template is None else choose_container(template, (), report)
    if template is None or index is None:
        return None
    world = World(
        nodes=only.replicas * only.job.pods,
        nodes_location=only.job.pods_location,
        procs=Procs(1, template.pod_location.child("containers", index)),
        resources=get_resources(template.containers[index]),
    )
    pod_job = PodJob(
        template=template,
        containers=(),
        world=world,
        suspend=suspend,
        suspend_location=spec.locate("suspend"),
        limit=combine_limits(only, policy),
        rules=only.job.rules,
        index=_choose_index(only),
    )
    if write_job(draft, pod_job, report) is None:
        return None
    write_restart_scope(draft, policy)
    report_old_hosts(draft, POD_HOST, report)
    return draft


def _choose_index(only: ReplicatedJob) -> NodeIndex:
    """Return where the pods find their number among all pods of the replicated job."""
    if only.replicas == 1:
        return COMPLETION_INDEX
    paths = [f"metadata.{part}['jobset.sigs.k8s.io/job-index']" for part in ("labels", "annotations")]
    return NodeIndex(fields=paths) if only.job.pods == 1 else NO_INDEX


def write_restart_scope(draft: Draft, policy: SetPolicy) -> None:
    """Set failurePolicy.restartScope, if the JobSet names a strategy and the job restarts."""
    current = draft.get("failurePolicy")
    if isinstance(current, dict) and policy.restart_scope is not None and draft.get("elastic") is None:
        draft.set("failurePolicy", {**current, "restartScope": policy.restart_scope}, policy.restart_scope_location)


def write_deadline(draft: Draft, only: ReplicatedJob) -> None:
    """Set the deadline of the replicated job."""
    location = only.job.fields.locate("activeDeadlineSeconds")
    draft.set("activeDeadlineSeconds", only.job.fields.take_integer("activeDeadlineSeconds"), location)
    only.job.fields.ignore("ttlSecondsAfterFinished", "muster deletes the job as a whole")


def combine_limits(only: ReplicatedJob, policy: SetPolicy) -> RestartLimit | None:
    """Return the limit of restarts of the JobSet and of its Jobs together."""
    location = only.job.fields.locate("backoffLimit")
    retries = only.job.backoff_limit
    if policy.limit is None:
        return RestartLimit(DEFAULT_BACKOFF_LIMIT if retries is None else retries, location)
    return RestartLimit(count_tries(retries or 0, policy.limit.count or 0), policy.limit.location)


def read_replicated_jobs(spec: Fields) -> list[ReplicatedJob]:
    """Read the replicated jobs with their pods."""
    jobs = []
    for fields in spec.take_entries("replicatedJobs"):
        name = fields.take_text("name") or ""
        replicas = fields.take_integer("replicas")
        fields.ignore("groupName", "muster doesn't group pods")
        for dependency in fields.take_entries("dependsOn"):
            dependency.take("name")
            dependency.take("status")
        job = fields.take_fields("template")
        metadata = job.take_fields("metadata")
        metadata.ignore("creationTimestamp", "left out, because the API server sets it")
        labels = metadata.take_text_map("labels")
        annotations = metadata.take_text_map("annotations")
        if _EXCLUSIVE in annotations:
            fields.report.add(
                metadata.locate("annotations", _EXCLUSIVE),
                "exclusive placement has no equivalent; remove it, and set nodePool.sameLabels in the imported job",
            )
        elif annotations:
            fields.report.note(metadata.locate("annotations"), "muster creates no Job that could have them")
        if labels.keys() - {STEP_LABEL}:
            fields.report.note(metadata.locate("labels"), "muster creates no Job that could have them")
        current = read_job_spec(job.take_fields("spec"))
        count = 1 if replicas is None else replicas
        if count > 0:
            jobs.append(ReplicatedJob(fields, name, count, labels, current))
    return jobs


def read_set_policies(spec: Fields) -> SetPolicy:
    """Read the policies and the network of a JobSet."""
    network = spec.take_fields("network")
    for name in ("enableDNSHostnames", "subdomain", "publishNotReadyAddresses"):
        network.ignore(name, "muster has its own Service, and the pods' host names are algo-1, algo-2, ...")
    startup = spec.take_fields("startupPolicy")
    startup.ignore("startupPolicyOrder", "muster starts all nodes together")
    spec.refuse("coordinator", "the pods have no such annotation; use MASTER_ADDR, and remove the field")
    spec.refuse("volumeClaimPolicies", "muster creates no claims; create them, and name them in the pod's volumes")
    success = spec.take_fields("successPolicy")
    if success.take_choice("operator", ("All", "Any")) == "Any":
        spec.report.add(success.locate("operator"), "found Any; a job succeeds when all ranks do: write All")
    return _read_failure_policy(spec.take_fields("failurePolicy"), success)


def _read_failure_policy(failure: Fields, success: Fields) -> SetPolicy:
    success.take_texts("targetReplicatedJobs")
    strategy = failure.take_choice("restartStrategy", _STRATEGIES)
    restarts = failure.take_integer("maxRestarts")
    if failure.take_list("rules"):
        failure.report.add(
            failure.locate("rules"),
            "rules about reasons of Jobs have no equivalent; remove them, and write failurePolicy.rules about exit "
            "codes in the imported job",
        )
    scopes = {"Recreate": "Pods", "BlockingRecreate": "Pods", "InPlaceRestart": "InPlace"}
    return SetPolicy(
        limit=RestartLimit(restarts or 0, failure.locate("maxRestarts")) if failure.names else None,
        restart_scope=None if strategy is None else scopes[strategy],
        restart_scope_location=failure.locate("restartStrategy"),
    )


def _check_targets(spec: Fields, only: ReplicatedJob) -> None:
    if spec.has("successPolicy"):
        spec.report.note(spec.locate("successPolicy"), f"the job succeeds when all ranks of {only.name} do")
