"""Placeholders for what only a cluster knows. Pure."""

from __future__ import annotations

from muster.api.spec.job import Job
from muster.render.kubernetes.pod_settings import PodSettings

PLACEHOLDERS = PodSettings(
    cluster_domain="cluster.local",
    collector_url="https://COLLECTOR",
    agent_config_map="AGENT_CONFIG_MAP",
    agent_image="OPERATOR_IMAGE",
    storage_image="OPERATOR_IMAGE",
)
"""Placeholders for a cluster's settings."""

_UID = "UID"


def simulate_apply(job: Job) -> Job:
    """Return the job as the API server would return it."""
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"uid": _UID})})
