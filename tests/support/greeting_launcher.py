"""The agent's class of a launcher that muster doesn't have: one rank per node, started by a shell that prints a
greeting.
"""

from typing import ClassVar, Dict, Mapping, Sequence, Tuple

from muster_worker.contract.schema import Plan
from muster_worker.launchers import commands
from muster_worker.launchers.base import Launcher, Reason, Start, Which
from muster_worker.launchers.environment import WORLD, Place


class Greeting(Launcher):
    variables: ClassVar[Mapping[str, Reason]] = dict.fromkeys(("RANK", "LOCAL_RANK", "WORLD_SIZE"), WORLD)
    options: ClassVar[Mapping[str, Reason]] = {"greeting": ("spec.launcher.greeting", "what the shell says first")}

    def starts(self, place: Place, node: Dict[str, str], which: Which) -> Sequence[Start]:
        world = {"RANK": str(place.node), "WORLD_SIZE": str(place.plan.nodes)}
        environment = {**node, **world, "LOCAL_RANK": "0"}
        script = 'echo "$0 ' + " ".join(place.plan.launcher_args) + '"; "$@"'
        return [Start("greeting", ("sh", "-c", script, "hello", *commands.wrapper(place)), environment)]

    def split(self, plan: Plan, words: Tuple[str, ...]) -> Tuple[Tuple[Tuple[str, str], ...], Tuple[str, ...]]:
        return (("greeting", words[3]),), words[4:]


LAUNCHER = Greeting()
