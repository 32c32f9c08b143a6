"""Derive from a job which reports its agents may send. Pure."""

from __future__ import annotations

from muster.api.spec.job import Job
from muster.api.timestamps import parse_timestamp
from muster.core.membership.members import has_fixed_members
from muster.core.reports.check import JobShape
from muster.core.world import count_nodes_and_spares, get_procs_per_node


def make_job_shape(job: Job, namespace: str) -> JobShape:
    """Return the shape of a job of this Kubernetes namespace."""
    return JobShape(
        job.metadata.uid,
        count_nodes_and_spares(job),
        get_procs_per_node(job),
        parse_timestamp(job.metadata.creation_timestamp),
        namespace,
        has_fixed_ranks=has_fixed_members(job),
        agents=job.spec.nodes + job.spec.spares,
    )
