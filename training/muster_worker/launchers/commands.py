"""A rank's command line: the user's command in muster's wrapper. Pure."""

from __future__ import annotations

from typing import Tuple

from muster_worker.contract.schema import Plan
from muster_worker.launchers.environment import NodeContext
from muster_worker.sagemaker.arguments import to_arguments


def user_command(plan: Plan) -> Tuple[str, ...]:
    """Return the user's command with its hyperparameters."""
    return plan.command + to_arguments(plan.hyperparameters)


def wrapper_command(context: NodeContext, *options: str) -> Tuple[str, ...]:
    """Return the user's command in a rank's wrapper, which reports to the agent. `options` are for the wrapper."""
    return (context.python, "-I", "-S", context.archive, "rank", *options, "--", *user_command(context.plan))
