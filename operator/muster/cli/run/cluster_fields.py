"""Fields of a job that `muster run` ignores, because they have an effect only on a cluster."""

from __future__ import annotations

from muster.api.spec.job import Job, Resources
from muster.cli.options import RunOptions


def cluster_notes(job: Job, options: RunOptions) -> tuple[str, ...]:
    """Notes for the user about fields that are set and ignored here."""
    unused = cluster_fields(job, options)
    notes: tuple[str, ...] = (f"ignored here, because they are for a cluster: {', '.join(unused)}",) if unused else ()
    if job.spec.suspend:
        notes += ("suspend: true is ignored here: the job runs",)
    return notes


def cluster_fields(job: Job, options: RunOptions) -> tuple[str, ...]:
    """The fields that are set and ignored here, in the order of the spec."""
    spec = job.spec
    checkpoint_volume = spec.checkpoint.volume if spec.checkpoint is not None else None
    fields = {
        "image": spec.image is not None,
        "resources": spec.resources != Resources(),
        # a run writes its results to its own folder, which its last lines show, never to a cluster's path
        "output.volume": spec.output is not None and spec.output.volume is not None,
        "checkpoint.volume": checkpoint_volume is not None
        and checkpoint_volume.host_path is None
        and not options.checkpoint,
        "nodePool": spec.node_pool is not None,
        "network.efa": spec.network.efa != "Auto",
        "cleanPodPolicy": spec.clean_pod_policy != "Running",
        "ttlSecondsAfterFinished": spec.ttl_seconds_after_finished is not None,
        "queue": spec.queue is not None,
        "template": bool(spec.template),
        "nodeOverrides": bool(spec.node_overrides),
        "sagemaker": spec.sagemaker is not None,
    }
    return tuple(name for name, is_set in fields.items() if is_set)
