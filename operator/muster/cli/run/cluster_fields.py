"""What of a job's file says something to a cluster only, which `muster run` does not use."""

from __future__ import annotations

from muster.api.spec.job import Job, Resources
from muster.cli.options import RunOptions


def cluster_notes(job: Job, options: RunOptions) -> tuple[str, ...]:
    """A line for people about the fields that are set and not used here; none when there are none."""
    unused = cluster_fields(job, options)
    notes: tuple[str, ...] = (f"not used here, for a cluster: {', '.join(unused)}",) if unused else ()
    if job.spec.suspend:
        notes += ("suspend: true holds a job back on a cluster only; here it runs",)
    return notes


def cluster_fields(job: Job, options: RunOptions) -> tuple[str, ...]:
    """The fields that are set and not used here, in the design's order."""
    spec = job.spec
    snapshots = spec.checkpoint.volume if spec.checkpoint is not None else None
    fields = {
        "image": spec.image is not None,
        "resources": spec.resources != Resources(),
        # results lie in the run's folder, which the last lines name: no run writes into a path that a cluster has
        "output.volume": spec.output is not None and spec.output.volume is not None,
        "checkpoint.volume": snapshots is not None and snapshots.host_path is None and options.checkpoint is None,
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
