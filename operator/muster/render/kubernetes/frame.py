"""The parts of a job's pod besides its container: owner, name, labels and defaults."""

from muster.api.document import JSON
from muster.api.names import API_VERSION, KIND
from muster.api.spec.job import Job
from muster.objects.kubernetes.names import (
    JOB_LABEL,
    JOB_UID_LABEL,
    NODE_LABEL,
    REPLACEMENT_LABEL,
    SPEC_HASH_ANNOTATION,
    TRAINER,
    children_name,
    host_name,
    pod_name,
)
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import MUSTER, PodPatch, in_spec, spec_of
from muster.render.kubernetes.setting import Setting
from muster.render.kubernetes.spec_hash import spec_hash

_EVICTIONS = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def owner_reference(job: Job) -> Fields:
    """The job as the owner of a child object: the cluster's garbage collection deletes both together."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def job_labels(job: Job) -> Fields:
    """The labels of all children of a job."""
    return {JOB_LABEL: job.metadata.name, JOB_UID_LABEL: job.metadata.uid}


def defaults(user: Fields) -> tuple[PodPatch, ...]:
    """Defaults for a pod, which the owner's fields `user` override."""
    return (
        PodPatch(
            in_spec({"containers": [{"name": TRAINER}]}), MUSTER, "the ranks' container; first, so that tools show it"
        ),
        *(
            PodPatch(
                {"metadata": {"annotations": {name: value}}},
                MUSTER,
                "a node's end ends the whole job: autoscalers shall not move this pod to save a machine",
            )
            for name, value in _EVICTIONS.items()
        ),
        PodPatch(
            in_spec({"automountServiceAccountToken": False}),
            MUSTER,
            "a training script has no business with the Kubernetes API",
        ),
        PodPatch(
            in_spec({"enableServiceLinks": False}),
            MUSTER,
            "variables of each Service of the namespace could be taken for a rendezvous",
        ),
        *_host_network(user),
    )


def _host_network(user: Fields) -> list[PodPatch]:
    if spec_of(user).get("hostNetwork") is not True:
        return []
    why = "with spec.template's hostNetwork, names of the cluster are found only so"
    return [PodPatch(in_spec({"dnsPolicy": "ClusterFirstWithHostNet"}), MUSTER, why)]


def identity(job: Job, node: int, replacement: int, setting: Setting) -> tuple[PodPatch, ...]:
    """The fields that identify the pod to the operator and to its peers."""
    name = job.metadata.name
    labels: Fields = {**job_labels(job), NODE_LABEL: str(node), REPLACEMENT_LABEL: str(replacement)}
    owners: list[JSON] = [owner_reference(job)]
    searches: list[JSON] = [f"{children_name(name)}.{job.metadata.namespace}.svc.{setting.cluster_domain}"]
    return (
        PodPatch(
            {"metadata": {"name": pod_name(name, node, replacement)}}, MUSTER, "job, node, and which pod of that node"
        ),
        PodPatch({"metadata": {"namespace": job.metadata.namespace}}, "metadata.namespace", "the job's"),
        PodPatch({"metadata": {"labels": labels}}, MUSTER, "the operator finds the job's pods by them"),
        PodPatch(
            {"metadata": {"annotations": {SPEC_HASH_ANNOTATION: spec_hash(job)}}},
            MUSTER,
            "tells whether the pod is what the job asks for now",
        ),
        PodPatch({"metadata": {"ownerReferences": owners}}, MUSTER, "the pod goes with the job"),
        PodPatch(in_spec({"restartPolicy": "Never"}), MUSTER, "one rank started anew would find no peers"),
        PodPatch(in_spec({"hostname": host_name(node)}), MUSTER, "SageMaker's name of the node"),
        PodPatch(
            in_spec({"subdomain": children_name(name)}), MUSTER, "the Service under which the nodes' names are found"
        ),
        PodPatch(in_spec({"dnsConfig": {"searches": searches}}), MUSTER, "algo-1, algo-2, ... are found in every pod"),
    )
