"""What of a cluster and its operator shows in the pods of every job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """`cluster_domain` is what the names of Services end in; agents report to `collector_url`.

    `agent_image` has the Python that agents bring along, `storage_image` what brings files to S3 and back, "" where
    nobody knows it; `pull_policy` is how both are fetched, "" for Kubernetes' own choice. `s3_endpoint` is the
    URL of an S3 that isn't Amazon's, "" where it is.
    """

    cluster_domain: str
    collector_url: str
    agent_image: str = ""
    pull_policy: str = ""
    storage_image: str = ""
    s3_endpoint: str = ""
