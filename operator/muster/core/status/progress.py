"""The job's progress and speed."""

import math
from collections.abc import Mapping

from muster.api.spec.job import Job
from muster.api.status.status import Progress
from muster.api.timestamps import from_text, to_millis
from muster.core.facts import JobFacts, MetricFacts
from muster.core.failure import rank_output
from muster.core.status.stragglers import count_of, steps_behind
from muster.core.status.views import RUNNING, Picture, RankView

SMOOTHING_SECONDS = 10.0
"""The time constant of the average speed: nodes report at different times."""

MAX_METRICS = 64
"""The most metrics in a status: all 40 of a spec, and some that the script reports by itself."""


def progress_of(picture: Picture) -> Progress | None:
    """The steps that all counting ranks have completed, the speed and the latest metrics; None while nothing is known.

    A job without running ranks has no speed.
    """
    metrics = _metrics(picture.job, picture.facts)
    shown = dict(list(metrics.items())[:MAX_METRICS])
    left_out = len(metrics) - len(shown) or None
    counted = counting(picture.views)
    if not counted:
        return Progress(metrics=shown, metrics_left_out=left_out) if shown else None
    slowest = min(counted, key=lambda view: (step_of(view), view.rank))
    at = slowest.facts.stepped_at if slowest.facts is not None else None
    moves = slowest.state == RUNNING and not picture.outcome.is_decided
    return Progress(
        step=step_of(slowest),
        steps_per_second=_pace(slowest, picture.previous.progress) if moves else None,
        slowest_rank=_slowest(stragglers(picture)),
        metrics=shown,
        metrics_left_out=left_out,
        at=None if at is None else to_millis(at),
    )


def stragglers(picture: Picture) -> Mapping[int, int]:
    """How many steps each running rank is behind the fastest one."""
    before = picture.previous.progress
    running = [view for view in counting(picture.views) if view.state == RUNNING]
    counts = (count_of(view.facts, view.node.agent.heard_at) for view in running if view.facts and view.node.agent)
    pace = before.steps_per_second if before is not None else None
    return steps_behind((count for count in counts if count is not None), pace)


def _slowest(behind: Mapping[int, int]) -> int | None:
    rank = max(behind, key=lambda rank: (behind[rank], -rank), default=None)
    return rank if rank is not None and behind[rank] > 0 else None


def counting(views: tuple[RankView, ...]) -> list[RankView]:
    """The ranks whose steps count: the running ones, or all if none runs any more.

    None of them before the first step: a script may import torch without ever calling an optimizer's step.
    """
    counted = [view for view in views if view.facts is not None and view.facts.report.step is not None]
    if not any(step_of(view) for view in counted):
        return []
    return [view for view in counted if view.state == RUNNING] or counted


def step_of(view: RankView) -> int:
    """The steps that a counting rank has completed."""
    return view.facts.report.step or 0 if view.facts is not None else 0


def _pace(slowest: RankView, before: Progress | None) -> float | None:
    at = slowest.facts.stepped_at if slowest.facts is not None else None
    if before is None or before.step is None or before.at is None or at is None:
        return before.steps_per_second if before is not None else None
    seconds = round(at, 3) - from_text(before.at)
    steps = step_of(slowest) - before.step
    pace = before.steps_per_second
    if steps > 0 and seconds > 0:
        newest = steps / seconds
        weight = 1.0 if pace is None else 1 - math.exp(-seconds / SMOOTHING_SECONDS)
        pace = newest if pace is None else pace + weight * (newest - pace)
    # A rank that has not completed a step for a while has become slower.
    waited = slowest.node.agent.heard_at - at if slowest.node.agent is not None else 0.0
    if pace is not None and waited > 0:
        pace = min(pace, 1 / waited)
    return None if pace is None else float(f"{pace:.3g}")


def _metrics(job: Job, facts: JobFacts) -> dict[str, float]:
    """The latest value of each metric, the spec's first; of two at the same time the lower rank's."""
    latest: dict[str, MetricFacts] = {}
    for node in facts.nodes:
        agent = node.current_agent
        for metric in agent.metrics if agent is not None else ():
            name = rank_output.clean(metric.value.name, limit=63)
            if name not in latest or _recency(metric) > _recency(latest[name]):
                latest[name] = metric
    asked_for = frozenset(metric.name for metric in job.spec.metrics)
    names = sorted(latest, key=lambda name: (name not in asked_for, name))
    return {name: latest[name].value.value for name in names}


def _recency(metric: MetricFacts) -> tuple[float, int]:
    return (metric.at, -metric.value.rank)
