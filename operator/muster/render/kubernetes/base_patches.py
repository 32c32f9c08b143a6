"""The patches for a pod's metadata, and muster's defaults for its spec."""

from muster.api.document import JSON
from muster.api.names import API_VERSION, JOB_UID_LABEL, KIND
from muster.api.spec.job import Job
from muster.objects.kubernetes.names import (
    JOB_LABEL,
    NODE_LABEL,
    REPLACEMENT_LABEL,
    SHARD_LABEL,
    SPEC_HASH_ANNOTATION,
    TRAINER_CONTAINER,
    build_children_name,
    build_host_name,
    build_pod_name,
)
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import MUSTER, PodPatch, get_pod_spec, wrap_in_spec
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.kubernetes.spec_hash import hash_spec

_NO_EVICTION_ANNOTATIONS = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}


def make_owner_reference(job: Job) -> Fields:
    """Return the owner reference to the job. With it, Kubernetes deletes the job's objects after the job."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def make_job_labels(job: Job) -> Fields:
    """Return the labels of all objects of a job."""
    return {JOB_LABEL: job.metadata.name, JOB_UID_LABEL: job.metadata.uid}


def make_default_patches(user_fields: Fields) -> tuple[PodPatch, ...]:
    """Return muster's defaults for a pod. The user's own fields `user_fields` override them."""
    return (
        PodPatch(
            wrap_in_spec({"containers": [{"name": TRAINER_CONTAINER}]}),
            MUSTER,
            "the ranks' container; first, so that kubectl selects it by default",
        ),
        *(
            PodPatch(
                {"metadata": {"annotations": {name: value}}},
                MUSTER,
                "autoscalers must not move this pod, because the whole job would stop",
            )
            for name, value in _NO_EVICTION_ANNOTATIONS.items()
        ),
        PodPatch(
            wrap_in_spec({"automountServiceAccountToken": False}),
            MUSTER,
            "training scripts don't need access to the Kubernetes API",
        ),
        PodPatch(
            wrap_in_spec({"enableServiceLinks": False}),
            MUSTER,
            "the variables of the namespace's Services could be mistaken for a rendezvous",
        ),
        *_make_host_network_patches(user_fields),
    )


def _make_host_network_patches(user_fields: Fields) -> list[PodPatch]:
    if get_pod_spec(user_fields).get("hostNetwork") is not True:
        return []
    reason = "with hostNetwork in spec.template, cluster names resolve only with this policy"
    return [PodPatch(wrap_in_spec({"dnsPolicy": "ClusterFirstWithHostNet"}), MUSTER, reason)]


def make_identity_patches(job: Job, node: int, replacement: int, pod_settings: PodSettings) -> tuple[PodPatch, ...]:
    """Return the fields that identify the pod to the operator and to other pods of the job."""
    name = job.metadata.name
    labels: Fields = {**make_job_labels(job), NODE_LABEL: str(node), REPLACEMENT_LABEL: str(replacement)}
    if pod_settings.shard:
        labels[SHARD_LABEL] = str(pod_settings.shard)
    owners: list[JSON] = [make_owner_reference(job)]
    searches: list[JSON] = [f"{build_children_name(name)}.{job.metadata.namespace}.svc.{pod_settings.cluster_domain}"]
    return (
        PodPatch(
            {"metadata": {"name": build_pod_name(name, node, replacement)}},
            MUSTER,
            "the job, the node and the replacement",
        ),
        PodPatch({"metadata": {"namespace": job.metadata.namespace}}, "metadata.namespace", "the job's namespace"),
        PodPatch({"metadata": {"labels": labels}}, MUSTER, "the operator finds the job's pods by these labels"),
        PodPatch(
            {"metadata": {"annotations": {SPEC_HASH_ANNOTATION: hash_spec(job)}}},
            MUSTER,
            "shows whether the pod matches the job's current spec",
        ),
        PodPatch({"metadata": {"ownerReferences": owners}}, MUSTER, "Kubernetes deletes the pod with the job"),
        PodPatch(
            wrap_in_spec({"restartPolicy": "Never"}), MUSTER, "the other ranks would not wait for a restarted rank"
        ),
        PodPatch(wrap_in_spec({"hostname": build_host_name(node)}), MUSTER, "SageMaker's name of the node"),
        PodPatch(
            wrap_in_spec({"subdomain": build_children_name(name)}), MUSTER, "the Service that resolves the nodes' names"
        ),
        PodPatch(
            wrap_in_spec({"dnsConfig": {"searches": searches}}), MUSTER, "algo-1, algo-2, ... resolve in every pod"
        ),
    )
