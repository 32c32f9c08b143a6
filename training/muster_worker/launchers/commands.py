"""A rank's command line: the user's command in muster's wrapper. Pure."""

from __future__ import annotations

from typing import Tuple

from muster_worker.contract.schema import Plan
from muster_worker.launchers.environment import Place
from muster_worker.sagemaker.arguments import to_arguments


def user_command(plan: Plan) -> Tuple[str, ...]:
    """The user's command with its hyperparameters."""
    return plan.command + to_arguments(plan.hyperparameters)


def wrapper(place: Place, *options: str) -> Tuple[str, ...]:
    """The command in a rank's wrapper, which reports start and end to the agent. `options` are the wrapper's."""
    return (place.python, "-I", "-S", place.archive, "rank", *options, "--", *user_command(place.plan))
