"""What of a cluster and its operator shows in the pods of every job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """`cluster_domain` is what the names of Services end in; agents report to `collector_url`."""

    cluster_domain: str
    collector_url: str
