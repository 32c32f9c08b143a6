"""Find the fields of a job that `muster run` ignores, because they have an effect only on a cluster."""

from __future__ import annotations

from muster.api.spec.job import Job, Resources
from muster.cli.options import RunOptions


def make_cluster_notes(job: Job, options: RunOptions) -> tuple[str, ...]:
    """Return notes for the user about fields that `muster run` ignores."""
    unused = list_cluster_fields(job, options)
    notes: tuple[str, ...] = (f"ignored here, because they are for a cluster: {', '.join(unused)}",) if unused else ()
    if job.spec.suspend:
        notes += ("suspend: true is ignored here: the job runs",)
    return notes


def list_cluster_fields(job: Job, options: RunOptions) -> tuple[str, ...]:
    """Return the fields that are set and that `muster run` ignores, in the order of the spec."""
    spec = job.spec
    checkpoint_volume = spec.checkpoint.volume if spec.checkpoint is not None else None
    fields = {
        "spares": spec.spares > 0,
        "image": spec.image is not None,
        "resources": spec.resources != Resources(),
        # A run writes its results to its own folder, never to a path of a cluster.
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
