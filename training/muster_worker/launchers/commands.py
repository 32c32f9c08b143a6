"""A rank's command line: what the job's owner wants to run, and muster's wrapper around it. Pure."""

from __future__ import annotations

from typing import Tuple

from muster_worker.contract.schema import Plan
from muster_worker.launchers.environment import Place
from muster_worker.sagemaker.arguments import to_arguments


def user_command(plan: Plan) -> Tuple[str, ...]:
    """What the job's owner wants to run: the command and its hyperparameters."""
    return plan.command + to_arguments(plan.hyperparameters)


def wrapper(place: Place, *options: str) -> Tuple[str, ...]:
    """A rank under the wrapper that tells the agent of its start and end; `options` are the wrapper's."""
    return (place.python, "-I", "-S", place.archive, "rank", *options, "--", *user_command(place.plan))
