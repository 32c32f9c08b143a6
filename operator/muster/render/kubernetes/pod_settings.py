"""Settings of the cluster and the operator that affect the pods of every job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PodSettings:
    """Settings for all pods. `cluster_domain` is the DNS suffix of Services. Agents report to `collector_url`.

    `agent_config_map` is the name of the ConfigMap with the agent in each namespace.
    `agent_image` contains the agent's Python, `storage_image` the tools for S3 transfers; "" if unknown.
    `pull_policy` applies to both; "" for Kubernetes' default. `s3_endpoint` is the URL of an S3-compatible service, ""
    for Amazon S3. `shard` is the operator's shard that creates the pods.
    """

    cluster_domain: str
    collector_url: str
    agent_config_map: str
    agent_image: str = ""
    pull_policy: str = ""
    storage_image: str = ""
    s3_endpoint: str = ""
    shard: int = 0
