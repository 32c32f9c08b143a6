"""What AWS' errors mean to a plan. Pure."""

from dataclasses import replace

from muster.aws.errors import (
    AccessDenied,
    AwsError,
    ExpiredCredentials,
    Invalid,
    NoCapacity,
    NoCredentials,
    NotFound,
)
from muster.aws.refused_row import RefusedRow
from muster.plan.facts import Trouble
from muster.plan.training_job_facts import REFUSALS, Obstacle, Setback

_OBSTACLES: tuple[tuple[type[AwsError], Obstacle], ...] = (
    (NoCapacity, Obstacle.CAPACITY),
    (NoCredentials, Obstacle.ACCESS),
    (ExpiredCredentials, Obstacle.ACCESS),
    (AccessDenied, Obstacle.ACCESS),
    (Invalid, Obstacle.REFUSED),
    (NotFound, Obstacle.REFUSED),
)


def setback_of(error: AwsError, now: float) -> Setback:
    """What `error` keeps muster from at `now` (Unix seconds)."""
    obstacle = next((found for kind, found in _OBSTACLES if isinstance(error, kind)), Obstacle.SERVICE)
    return Setback(obstacle, Trouble(error.reason, error.message), now)


def again(setback: Setback, before: Setback | None) -> Setback:
    """The same with the times counted that this came in a row; `before` is what came last, None after a success."""
    tries = before.tries + 1 if before is not None and before.obstacle is setback.obstacle else 1
    return replace(setback, tries=tries, refused_seconds=_refused_seconds(setback, before))


def _refused_seconds(setback: Setback, before: Setback | None) -> float:
    row = RefusedRow()
    if before is not None:
        row = RefusedRow(before.refused_seconds, before.at if before.obstacle in REFUSALS else None)
    if setback.obstacle in REFUSALS:
        row = row.refused(setback.at)
    elif setback.obstacle is Obstacle.SERVICE:
        row = row.unanswered()
    else:
        row = RefusedRow()
    return row.seconds
