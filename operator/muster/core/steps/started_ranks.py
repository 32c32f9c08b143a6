"""Which ranks of a job have started."""

from muster.api.spec.job import Job
from muster.core.facts import JobFacts
from muster.core.world import compute_world_size
from muster_worker.contract.schema import RankState


def find_started_ranks(job: Job, facts: JobFacts) -> frozenset[int]:
    """Return the ranks that have started. Agents also list ranks that have not started."""
    reports = (rank.report for node in facts.nodes for rank in node.ranks)
    ranks = {report.rank for report in reports if report.state != RankState.STARTING}
    return frozenset(rank for rank in ranks if 0 <= rank < compute_world_size(job))
