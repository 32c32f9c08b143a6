"""The job's progress and speed."""

import math
from collections.abc import Mapping

from muster.api.spec.job import Job
from muster.api.status.progress import Progress
from muster.api.timestamps import format_timestamp_milliseconds, parse_timestamp
from muster.core.facts import JobFacts, MetricFacts
from muster.core.failure import rank_output
from muster.core.status.completion import find_completion
from muster.core.status.steps_behind import compare_step_counts, read_step_count
from muster.core.status.views import RUNNING, RankView, StatusInput

SMOOTHING_SECONDS = 10.0
"""The time constant of the average speed. An average is needed because nodes report at different times."""

MAX_METRICS = 64
"""The maximum number of metrics in a status: all 40 of a spec, and some others that the script reports."""


def build_progress(status_input: StatusInput) -> Progress | None:
    """Return the steps that all ranks have completed, the speed, the completion and the metrics; None without a report.

    Ignore ranks without a step count. A job without running ranks has no speed.
    """
    metrics = _collect_metrics(status_input.job, status_input.facts)
    shown = dict(list(metrics.items())[:MAX_METRICS])
    left_out = len(metrics) - len(shown) or None
    completion = find_completion(status_input)
    percent = None if completion is None else completion.percent
    views_with_steps = select_ranks_with_steps(status_input.views)
    if not views_with_steps:
        if completion is None:
            return Progress(metrics=shown, metrics_left_out=left_out) if shown else None
        return Progress(
            percent=percent,
            estimated_remaining_seconds=completion.remaining_seconds,
            metrics=shown,
            metrics_left_out=left_out,
            at=_format_optional_time(completion.at),
        )
    slowest = min(views_with_steps, key=lambda view: (count_completed_steps(view), view.rank))
    at = slowest.facts.highest_step_at if slowest.facts is not None else None
    is_running = slowest.state == RUNNING and not status_input.outcome.is_decided
    return Progress(
        step=count_completed_steps(slowest),
        steps_per_second=_choose_speed(status_input, slowest) if is_running else None,
        percent=percent,
        estimated_remaining_seconds=None if completion is None else completion.find_remaining_seconds(at),
        slowest_rank=_find_slowest(count_steps_behind(status_input)),
        metrics=shown,
        metrics_left_out=left_out,
        at=_format_optional_time(at),
    )


def _format_optional_time(at: float | None) -> str | None:
    return None if at is None else format_timestamp_milliseconds(at)


def count_steps_behind(status_input: StatusInput) -> Mapping[int, int]:
    """Return how many steps each running rank is behind the fastest rank."""
    before = status_input.previous.progress
    running = [view for view in select_ranks_with_steps(status_input.views) if view.state == RUNNING]
    counts = (
        read_step_count(view.facts, view.node.agent.last_report_at)
        for view in running
        if view.facts and view.node.agent
    )
    speed = before.steps_per_second if before is not None else None
    return compare_step_counts((count for count in counts if count is not None), speed)


def _find_slowest(behind: Mapping[int, int]) -> int | None:
    rank = max(behind, key=lambda rank: (behind[rank], -rank), default=None)
    return rank if rank is not None and behind[rank] > 0 else None


def select_ranks_with_steps(views: tuple[RankView, ...]) -> list[RankView]:
    """Return the running ranks with a step count, or all ranks with a step count if none of them runs.

    Return no ranks before the first step, because a script may import torch without using an optimizer.
    """
    views_with_steps = [view for view in views if view.facts is not None and view.facts.report.step is not None]
    if not any(count_completed_steps(view) for view in views_with_steps):
        return []
    return [view for view in views_with_steps if view.state == RUNNING] or views_with_steps


def count_completed_steps(view: RankView) -> int:
    """Return the number of steps that the rank has completed."""
    return view.facts.report.step or 0 if view.facts is not None else 0


def _choose_speed(status_input: StatusInput, slowest: RankView) -> float | None:
    # While ranks hang, the average would only approach 0.
    return 0.0 if status_input.outcome.hang else _compute_steps_per_second(slowest, status_input.previous.progress)


def _compute_steps_per_second(slowest: RankView, before: Progress | None) -> float | None:
    at = slowest.facts.highest_step_at if slowest.facts is not None else None
    if before is None or before.step is None or before.at is None or at is None:
        return before.steps_per_second if before is not None else None
    seconds = round(at, 3) - parse_timestamp(before.at)
    steps = count_completed_steps(slowest) - before.step
    speed = before.steps_per_second
    if steps > 0 and seconds > 0:
        current = steps / seconds
        weight = 1.0 if speed is None else 1 - math.exp(-seconds / SMOOTHING_SECONDS)
        speed = current if speed is None else speed + weight * (current - speed)
    # The current step also limits the speed.
    idle_seconds = slowest.node.agent.last_report_at - at if slowest.node.agent is not None else 0.0
    if speed is not None and idle_seconds > 0:
        speed = min(speed, 1 / idle_seconds)
    return None if speed is None else float(f"{speed:.3g}")


def _collect_metrics(job: Job, facts: JobFacts) -> dict[str, float]:
    """Return the latest value of each metric; metrics of the spec come first. The lowest rank wins a tie."""
    latest: dict[str, MetricFacts] = {}
    for node in facts.nodes:
        agent = node.current_agent
        for metric in agent.metrics if agent is not None else ():
            name = rank_output.sanitize_line(metric.value.name, limit=63)
            if name not in latest or _get_recency(metric) > _get_recency(latest[name]):
                latest[name] = metric
    in_spec = frozenset(metric.name for metric in job.spec.metrics)
    names = sorted(latest, key=lambda name: (name not in in_spec, name))
    return {name: latest[name].value.value for name in names}


def _get_recency(metric: MetricFacts) -> tuple[float, int]:
    return (metric.at, -metric.value.rank)
