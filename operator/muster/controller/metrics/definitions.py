"""The metrics of the operator: their names, labels and meanings. docs/metrics.md has the same table."""

from dataclasses import dataclass
from enum import StrEnum

_MINUTES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0)
_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_FRACTIONS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class MetricKind(StrEnum):
    """Prometheus' types of metrics."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """A metric. `help_text` is its HELP line; `bounds` are a histogram's buckets."""

    name: str
    kind: MetricKind
    help_text: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


BUILD_INFO = Metric(
    "muster_build_info", MetricKind.GAUGE, "Always 1. The label is the version of this replica.", ("version",)
)
LEADER = Metric("muster_leader", MetricKind.GAUGE, "1 if this replica is the leader, otherwise 0.")
JOBS = Metric(
    "muster_jobs", MetricKind.GAUGE, "Jobs by phase. Only the leader reports them.", ("namespace", "backend", "phase")
)
RANKS = Metric(
    "muster_ranks",
    MetricKind.GAUGE,
    "Ranks of unfinished jobs, by state. Only the leader reports them.",
    ("namespace", "backend", "state"),
)
JOBS_ENDED = Metric(
    "muster_jobs_ended_total",
    MetricKind.COUNTER,
    "Jobs that have ended, by the reason of the condition Complete or Failed.",
    ("namespace", "backend", "phase", "reason"),
)
RESTARTS = Metric(
    "muster_job_restarts_total",
    MetricKind.COUNTER,
    "Restarts of jobs, by the reason of the failure, or RestartRequested.",
    ("namespace", "backend", "reason"),
)
STRAGGLERS = Metric(
    "muster_stragglers_total",
    MetricKind.COUNTER,
    "How often muster found new stragglers in a job.",
    ("namespace", "backend"),
)
START_SECONDS = Metric(
    "muster_job_start_seconds",
    MetricKind.HISTOGRAM,
    "Seconds from a job's creation or resumption until its first ranks run.",
    ("backend",),
    _MINUTES,
)
DETECTION_SECONDS = Metric(
    "muster_failure_detection_seconds",
    MetricKind.HISTOGRAM,
    "Seconds from a failure until the first status that shows it.",
    ("backend",),
    _SECONDS,
)
RECOVERY_SECONDS = Metric(
    "muster_failure_recovery_seconds",
    MetricKind.HISTOGRAM,
    "Seconds from a failure until all ranks of the next attempt run.",
    ("backend",),
    _SECONDS,
)
STATUS_WRITES = Metric(
    "muster_status_writes_total",
    MetricKind.COUNTER,
    "Status writes. Change: a phase, condition or rank state changed. Progress: only progress changed.",
    ("kind",),
)
RECONCILES = Metric(
    "muster_reconciles_total",
    MetricKind.COUNTER,
    "Reconciles of jobs. Bug: an unexpected error in muster.",
    ("result",),
)
RECONCILE_SECONDS = Metric(
    "muster_reconcile_seconds",
    MetricKind.HISTOGRAM,
    "Seconds that a reconcile takes, including the requests that it waits for.",
    (),
    _FRACTIONS,
)
LOOP_LAG_SECONDS = Metric(
    "muster_event_loop_lag_seconds",
    MetricKind.HISTOGRAM,
    "Seconds from the time at which a timer is due until the event loop runs it.",
    (),
    _FRACTIONS,
)
REFUSALS = Metric(
    "muster_collector_refusals_total",
    MetricKind.COUNTER,
    "Requests and connections of agents that the collector refused.",
    ("reason",),
)
CONNECTIONS = Metric("muster_collector_connections", MetricKind.GAUGE, "Open connections of the collector.")
API_REQUESTS = Metric(
    "muster_api_requests_total",
    MetricKind.COUNTER,
    "Requests to the API server, except those of kopf and the elector. Code none: no response.",
    ("verb", "resource", "code"),
)
AWS_REQUESTS = Metric(
    "muster_aws_requests_total",
    MetricKind.COUNTER,
    "Requests to AWS. Code none: no response.",
    ("service", "operation", "code"),
)

METRICS = (
    *(BUILD_INFO, LEADER, JOBS, RANKS, JOBS_ENDED, RESTARTS, STRAGGLERS),
    *(START_SECONDS, DETECTION_SECONDS, RECOVERY_SECONDS),
    *(STATUS_WRITES, RECONCILES, RECONCILE_SECONDS, LOOP_LAG_SECONDS, REFUSALS, CONNECTIONS),
    *(API_REQUESTS, AWS_REQUESTS),
)
"""All metrics, in the order of a scrape."""
