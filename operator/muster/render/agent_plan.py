"""Render the job's plan, which every agent of the job receives."""

from muster.api.spec.job import Job
from muster.core.failure_timeouts import get_fence_seconds, get_hang_timeout
from muster.core.world import count_nodes_and_spares, get_procs_per_node
from muster_worker.contract import schema
from muster_worker.contract.mpi import Mpi


def render_plan(job: Job, collector_url: str, collector_ca: str) -> schema.Plan:
    """Return the job's plan. `collector_ca` is in PEM. Raises `ValueError` while `procsPerNode` is still Auto."""
    spec = job.spec
    return schema.Plan(
        version=schema.VERSION,
        namespace=job.metadata.namespace,
        job=job.metadata.name,
        job_uid=job.metadata.uid,
        nodes=count_nodes_and_spares(job),
        procs_per_node=get_procs_per_node(job),
        launcher=spec.launcher.name,
        launcher_args=spec.launcher.chosen_launcher.list_arguments(),
        command=spec.command,
        hyperparameters=dict(spec.hyperparameters),
        channels=tuple(
            schema.Channel(
                channel.name,
                channel.content_type,
                is_sharded=channel.s3 is not None and channel.s3.distribution == "ShardedByS3Key",
            )
            for channel in spec.inputs
        ),
        metrics=tuple(schema.Metric(metric.name, metric.regex) for metric in spec.metrics),
        interface=spec.network.interface,
        collector_url=collector_url,
        collector_ca=collector_ca,
        mpi=spec.launcher.mpi.implementation if spec.launcher.mpi is not None else Mpi.AUTO,
        network_check=spec.network.check,
        has_code=spec.source is not None,
        hang_seconds=get_hang_timeout(job),
        fence_seconds=get_fence_seconds(job),
        warm_start=spec.warm_start == "Auto",
    )
