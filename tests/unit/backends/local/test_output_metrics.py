"""The metrics that SageMaker would extract from the output of a local run."""

from muster.api.spec.job import Metric
from muster.backends.local.toolkit.metrics import OutputMetrics
from muster.core.facts import MetricFacts
from muster_worker.contract.schema import MetricValue
from unit.core.training_job.training_world import job


def test_the_last_value_of_each_metric_counts_on_each_host() -> None:
    metrics = (Metric(name="loss", regex="loss=([0-9.]+)"), Metric(name="acc", regex="acc=([0-9.]+)"))
    spec = job().spec.model_copy(update={"metrics": metrics, "procs_per_node": 4})
    output = OutputMetrics(job().model_copy(update={"spec": spec}))
    lines = [
        (0, 1.0, "loss=2.5 acc=0.1"),
        (1, 2.0, "[1,mpirank:4,algo-2]<stdout>:loss=1.5"),
        (0, 3.0, "loss=0.5"),
        (0, 4.0, "-"),
    ]
    assert [output.feed(*line) for line in lines] == [True, True, True, False]
    assert output.get_metrics(0) == (
        MetricFacts(MetricValue("acc", 0.1, 0, 0.0), 1.0),
        MetricFacts(MetricValue("loss", 0.5, 0, 0.0), 3.0),
    )
    assert output.get_metrics(1) == (MetricFacts(MetricValue("loss", 1.5, 4, 0.0), 2.0),)
    assert output.get_metrics(2) == ()
