"""Import a PyTorchJob (kubeflow.org/v1). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.autoscaler import add_autoscaler
from muster.importers.kubernetes.context import Context
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.equal_pods import find_difference
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.job_builder import PodJob, write_job
from muster.importers.kubernetes.launch.procs import Procs
from muster.importers.kubernetes.launch.world import World
from muster.importers.kubernetes.metadata import read_metadata
from muster.importers.kubernetes.old_hosts import report_old_hosts
from muster.importers.kubernetes.pod_template import get_resources
from muster.importers.kubernetes.replicas import Replica, read_replicas
from muster.importers.kubernetes.restarts import RestartLimit, note_pod_policy, read_replica_policy
from muster.importers.kubernetes.run_policy import RunPolicy, read_run_policy
from muster.importers.kubernetes.scheduling import read_scheduling_policy

_CONTAINER = "pytorch"
_DEFAULT_POLICY = "OnFailure"
_CONTROLLERS = ("kubeflow.org/training-operator",)
_BACKENDS = ("c10d", "etcd", "etcd-v2", "static")


@dataclass(frozen=True)
class _Elastic:
    """elasticPolicy. The limits are None if they are unset."""

    fields: Fields
    minimum: int | None
    maximum: int | None
    is_standalone: bool
    procs: int | None
    restarts: RestartLimit | None
    metrics: list[JSON]

    @property
    def is_set(self) -> bool:
        return bool(self.fields.names)


def import_pytorch_job(root: Fields, _: Context) -> Draft | None:
    """Return the job, whose master is node 0."""
    draft = Draft(read_metadata(root))
    spec = root.take_fields("spec")
    policy = read_run_policy(spec, draft, _CONTROLLERS)
    elastic = _read_elastic(spec.take_fields("elasticPolicy"))
    procs = spec.take("nprocPerNode")
    replicas = read_replicas(spec, "pytorchReplicaSpecs", {"Master": 1, "Worker": 1})
    _check_master(replicas, elastic, spec)
    nodes = sum(replica.count for replica in replicas)
    template = next((replica.template for replica in replicas if replica.template is not None), None)
    _check_equal(replicas)
    read_scheduling_policy(policy.fields, nodes, draft, template)
    if template is None or any(replica.template is None for replica in replicas):
        return None
    value: JSON = elastic.procs if procs is None else procs
    world = World(
        nodes=nodes,
        nodes_location=replicas[-1].fields.locate("replicas"),
        procs=Procs("auto" if value is None else value, spec.locate("nprocPerNode")),
        resources=get_resources(template.containers[template.find_container(_CONTAINER) or 0]),
        sets_ranks=replicas[0].name == "Master",
        sets_torchrun=True,
    )
    limit, rules = _find_restarts(replicas, policy, elastic)
    job = PodJob(template, (_CONTAINER,), world, policy.suspend, policy.fields.locate("suspend"), limit, rules)
    if write_job(draft, job, root.report) is None:
        return None
    _write_elastic(draft, elastic, nodes)
    report_old_hosts(draft, r"(master|worker)-\d+", root.report)
    return draft


def _read_elastic(fields: Fields) -> _Elastic:
    fields.take_choice("rdzvBackend", _BACKENDS)
    for name in ("rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId", "rdzvConf"):
        if fields.has(name):
            fields.take(name)
            fields.report.note(fields.locate(name), "muster sets the rendezvous itself")
    restarts = fields.take_integer("maxRestarts")
    return _Elastic(
        fields=fields,
        minimum=fields.take_integer("minReplicas", 1),
        maximum=fields.take_integer("maxReplicas", 1),
        is_standalone=fields.take_boolean("standalone") is True,
        procs=fields.take_integer("nProcPerNode", 1),
        restarts=None if restarts is None else RestartLimit(restarts, fields.locate("maxRestarts")),
        metrics=fields.take_list("metrics"),
    )


def _check_master(replicas: list[Replica], elastic: _Elastic, spec: Fields) -> None:
    if not replicas:
        return
    if replicas[0].name == "Master" and replicas[0].count != 1:
        spec.report.add(replicas[0].fields.locate("replicas"), f"found {replicas[0].count}; 1 master is expected")
    workers = replicas[-1]
    if elastic.is_standalone:
        location = elastic.fields.locate("standalone")
        if sum(replica.count for replica in replicas) == 1:
            spec.report.note(location, "muster sets the rendezvous itself")
        else:
            spec.report.add(location, "found true, with which each pod trains alone; remove it")
    if replicas[0].name != "Master" and workers.count > 1 and not elastic.is_set:
        spec.report.add(
            spec.locate("pytorchReplicaSpecs"),
            f"found {workers.count} workers without Master or elasticPolicy, which train separately in Kubeflow; add "
            "Master, or set replicas: 1",
        )


def _check_equal(replicas: list[Replica]) -> None:
    """Check that all pods are equal, as the nodes of a job are."""
    templates = [replica.template for replica in replicas if replica.template is not None]
    for other in templates[1:]:
        difference = find_difference(templates[0], other)
        if difference is not None:
            replicas[0].fields.report.add(
                difference.location,
                f"differs from the same field of {replicas[0].name}; all nodes of a job have one template: write the "
                "same value, and import again. spec.nodeOverrides can change it for some nodes afterwards",
            )


def _find_restarts(
    replicas: list[Replica], policy: RunPolicy, elastic: _Elastic
) -> tuple[RestartLimit | None, list[JSON]]:
    policies = {replica.restart_policy or _DEFAULT_POLICY for replica in replicas}
    last = replicas[-1]
    if len(policies) > 1:
        last.fields.report.add(
            last.fields.locate("restartPolicy"),
            f"found {' and '.join(sorted(policies))}; muster restarts all ranks together: write one policy for all",
        )
    for replica in replicas:
        if replica.template is not None:
            note_pod_policy(replica.template, last.fields.report)
    location = last.fields.locate("restartPolicy")
    backoff_limit = policy.backoff_limit
    if elastic.restarts is not None and backoff_limit is not None:
        last.fields.report.note(backoff_limit.location, "the imported job has the limit of elasticPolicy.maxRestarts")
    limit, rules = read_replica_policy(
        last.restart_policy or _DEFAULT_POLICY, location, elastic.restarts or backoff_limit, last.fields.report
    )
    return elastic.restarts or limit, rules


def _write_elastic(draft: Draft, elastic: _Elastic, nodes: int) -> None:
    """Set spec.elastic. Without limits, Kubeflow takes the number of workers for both."""
    minimum = elastic.minimum or elastic.maximum or nodes
    maximum = elastic.maximum or minimum
    if not elastic.is_set:
        return
    launcher = draft.get("launcher")
    if isinstance(launcher, dict) and "direct" in launcher:
        elastic.fields.report.add(
            elastic.fields.location, "found elasticPolicy, but the command isn't torchrun, which reads it; use torchrun"
        )
    if (minimum, maximum) == (nodes, nodes):
        elastic.fields.report.note(elastic.fields.location, f"the minimum and the maximum are the {nodes} nodes")
    else:
        draft.set("elastic", {"minNodes": minimum, "maxNodes": maximum}, elastic.fields.location)
        if draft.get("failurePolicy") is None:
            draft.set("failurePolicy", {"maxRestarts": 0}, elastic.fields.location)
    if elastic.metrics:
        add_autoscaler(
            draft, elastic.metrics, (minimum, maximum), elastic.fields.locate("metrics"), elastic.fields.report
        )
