"""A rank's command line: the user's command in muster's wrapper. Pure."""

from __future__ import annotations

from typing import Tuple, Union

from muster_worker.contract.schema import Launcher, Plan
from muster_worker.fork_server.command import PythonCommand, parse_command
from muster_worker.launchers.environment import NodeContext
from muster_worker.sagemaker.arguments import to_arguments


def build_user_command(plan: Plan) -> Tuple[str, ...]:
    """Return the user's command with its hyperparameters."""
    return plan.command + to_arguments(plan.hyperparameters)


def build_agent_command(context: NodeContext, name: str) -> Tuple[str, ...]:
    """Return the command line of a sub-command of the agent's archive."""
    return (context.python, "-I", "-S", context.program, name)


def build_wrapper_command(context: NodeContext, *options: str) -> Tuple[str, ...]:
    """Return the user's command in a rank's wrapper, which reports to the agent. `options` are for the wrapper."""
    return (*build_agent_command(context, "rank"), *options, "--", *build_user_command(context.plan))


def find_script(plan: Plan) -> Union[PythonCommand, str]:
    """Return the script for whose ranks the agent starts a fork server, or the reason why it starts none."""
    if not plan.warm_start:
        return "the job turns it off"
    if plan.launcher == Launcher.MPI:
        return "mpirun starts the ranks"
    parsed = parse_command(build_user_command(plan))
    if isinstance(parsed, PythonCommand) and parsed.module:
        return "the command is a module, not a script"
    return parsed
