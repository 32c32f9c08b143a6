"""Read each metric's last value from a training job's output, by its MetricDefinitions, like SageMaker."""

from muster.api.spec.job import Job
from muster.core.facts import MetricFacts
from muster.core.world import get_procs_per_node
from muster_worker.contract.schema import Metric, MetricValue
from muster_worker.rank_group.metrics import MetricReader


class OutputMetrics:
    """The metrics of a job. A host's values count as its first rank's, because lines don't name their rank."""

    def __init__(self, job: Job) -> None:
        self._reader = MetricReader([Metric(metric.name, metric.regex) for metric in job.spec.metrics])
        self._procs = get_procs_per_node(job)
        self._by_node: dict[int, dict[str, MetricFacts]] = {}

    def feed(self, node: int, at: float, line: str) -> bool:
        """Read a line that was written `at` (Unix seconds); return whether it contains a value."""
        values = self._reader.read(line.encode())
        rank = node * self._procs
        entry = self._by_node.setdefault(node, {})
        entry.update({name: MetricFacts(MetricValue(name, value, rank, 0.0), at) for name, value in values.items()})
        return bool(values)

    def get_metrics(self, node: int) -> tuple[MetricFacts, ...]:
        """Return the node's metrics, sorted by name."""
        return tuple(metric for _, metric in sorted(self._by_node.get(node, {}).items()))
