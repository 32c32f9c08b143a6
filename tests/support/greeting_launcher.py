"""The agent's class of a launcher that muster doesn't have. A shell prints a greeting and starts one rank per node."""

from typing import ClassVar, Dict, Mapping, Sequence, Tuple

from muster_worker.contract.schema import Plan
from muster_worker.launchers import commands
from muster_worker.launchers.base import FindProgram, Launcher, ProcessSpec, Reason
from muster_worker.launchers.environment import WORLD_REASON, NodeContext


class GreetingLauncher(Launcher):
    variables: ClassVar[Mapping[str, Reason]] = dict.fromkeys(("RANK", "LOCAL_RANK", "WORLD_SIZE"), WORLD_REASON)
    options: ClassVar[Mapping[str, Reason]] = {"greeting": ("spec.launcher.greeting", "what the shell says first")}

    def list_processes(
        self, context: NodeContext, environment: Dict[str, str], find_program: FindProgram
    ) -> Sequence[ProcessSpec]:
        world = {"RANK": str(context.node), "WORLD_SIZE": str(context.plan.nodes)}
        rank_environment = {**environment, **world, "LOCAL_RANK": "0"}
        script = 'echo "$0 ' + " ".join(context.plan.launcher_args) + '"; "$@"'
        return [
            ProcessSpec(
                "greeting", ("sh", "-c", script, "hello", *commands.build_wrapper_command(context)), rank_environment
            )
        ]

    def split_command(self, plan: Plan, words: Tuple[str, ...]) -> Tuple[Tuple[Tuple[str, str], ...], Tuple[str, ...]]:
        return (("greeting", words[3]),), words[4:]


LAUNCHER = GreetingLauncher()
