"""What of a cluster and its operator shows in the pods of every job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """`cluster_domain` is what the names of Services end in; agents report to `collector_url`.

    `agent_image` has the Python that agents bring along, "" where nobody knows it; `agent_pull_policy` is how it is
    fetched, "" for Kubernetes' own choice.
    """

    cluster_domain: str
    collector_url: str
    agent_image: str = ""
    agent_pull_policy: str = ""
