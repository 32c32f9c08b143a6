"""Rules about how the ranks start: launcher, command, image, network, and the number of ranks."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.spec.launcher import list_launcher_types
from muster.api.spec.limits import MAX_WORLD_SIZE
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules import interfaces
from muster.api.validation.rules.mpi.rules import MPIRUN_PATTERN, is_mpirun

_TORCHRUN_OPTIONS = (
    "nnodes",
    "nproc-per-node",
    "node-rank",
    "master-addr",
    "master-port",
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "rdzv-conf",
    "max-restarts",
    "no-python",
    "standalone",
    "module",
    "run-path",
    "virtual-local-rank",  # every rank would see LOCAL_RANK 0
    "help",  # it would exit with 0 and start no rank
    "print-completion",
)
"""The torchrun options that muster sets, without leading dashes. torchrun accepts _ instead of -."""

_LAUNCHER_COMMANDS = ("torchrun", "accelerate", "deepspeed")
"""Commands that start the ranks of one node. `contract.mpi.Mpi` lists the commands that start all ranks."""

_LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
"""The same launchers as Python modules, for `python -m`."""


def _is_torchrun_option(argument: str) -> bool:
    """Whether the argument is an option that muster sets, possibly abbreviated or with `=value`."""
    if argument == "--" or argument.startswith(("-m", "-h")):
        return True
    if not argument.startswith("--"):
        return False
    name = argument[2:].partition("=")[0].replace("_", "-")
    # argparse accepts every unambiguous prefix of an option.
    return any(option.startswith(name) for option in _TORCHRUN_OPTIONS)


def _check_launchers(spec: Spec) -> Iterator[Violation]:
    launcher_names = spec.launcher.list_configured_launchers()
    if len(launcher_names) != 1:
        yield Violation(("launcher",), " and ".join(launcher_names) or "none")


def _check_torchrun_options(spec: Spec) -> Iterator[Violation]:
    args = spec.launcher.torchrun.args if spec.launcher.torchrun is not None else ()
    for index, argument in enumerate(args):
        if _is_torchrun_option(argument):
            yield Violation(("launcher", "torchrun", "args", index), quote(argument))


def _check_torchrun_arguments(spec: Spec) -> Iterator[Violation]:
    args = spec.launcher.torchrun.args if spec.launcher.torchrun is not None else ()
    for index, argument in enumerate(args):
        follows_option = index > 0 and args[index - 1].startswith("-") and "=" not in args[index - 1]
        if not argument.startswith("-") and not follows_option:
            yield Violation(("launcher", "torchrun", "args", index), quote(argument))


def _check_empty_command(spec: Spec) -> Iterator[Violation]:
    if not spec.command[0].strip():
        yield Violation(("command", 0), quote(spec.command[0]))


def _check_unsplit_command(spec: Spec) -> Iterator[Violation]:
    # A space is allowed in the folder of a program.
    if re.match(rf"([^\s/]+|\S*/({MPIRUN_PATTERN}))\s+\S", spec.command[0]):
        yield Violation(("command", 0), quote(spec.command[0]))


def _check_launcher_in_launcher(spec: Spec) -> Iterator[Violation]:
    if any(launcher.command_starts_ranks for launcher in spec.launcher.list_configured_launchers().values()):
        return
    if posixpath.basename(spec.command[0]) in _LAUNCHER_COMMANDS:
        yield Violation(("command", 0), quote(spec.command[0]))
    index = _find_module(spec.command)
    if index is not None and spec.command[index] in _LAUNCHER_MODULES:
        yield Violation(("command", index), quote(spec.command[index]))


def _find_module(command: Sequence[str]) -> int | None:
    """Return the index of the module that `python -m` runs; None for other commands."""
    if not re.fullmatch(r"python[0-9.]*", posixpath.basename(command[0])):
        return None
    index = 1
    while index + 1 < len(command) and command[index].startswith("-"):
        if command[index] == "-m":
            return index + 1
        index += 2 if command[index] in ("-W", "-X") else 1
    return None


def _check_mpirun_in_launcher(spec: Spec) -> Iterator[Violation]:
    accepts_mpirun = any(launcher.accepts_mpirun for launcher in spec.launcher.list_configured_launchers().values())
    if not accepts_mpirun and is_mpirun(spec.command[0]):
        yield Violation(("command", 0), quote(spec.command[0]))


def _check_image(spec: Spec) -> Iterator[Violation]:
    if spec.image is not None and re.search(r"\s", spec.image):
        yield Violation(("image",), quote(spec.image))


def _check_interface(spec: Spec) -> Iterator[Violation]:
    problem = interfaces.find_interface_problem(spec.network.interface)
    if problem is not None:
        yield Violation(("network", "interface"), f"{quote(spec.network.interface)}: {problem}")


def _check_world(spec: Spec) -> Iterator[Violation]:
    if spec.procs_per_node != "Auto" and spec.max_nodes * spec.procs_per_node > MAX_WORLD_SIZE:
        yield Violation(("nodes",), f"{spec.max_nodes} nodes of {spec.procs_per_node} ranks")


_OPTION_PATTERN = "|".join(option.replace("-", "[-_]") for option in _TORCHRUN_OPTIONS)
_NAMES_CEL = interfaces.NAMES.replace("\\", "\\\\")

_LAUNCHERS = list_launcher_types()
*_FIRST_LAUNCHERS, _LAST_LAUNCHER = _LAUNCHERS


def _build_has_any_cel(names: Iterable[str]) -> str:
    return " || ".join(f"has(self.launcher.{name})" for name in names)


_STARTS_RANKS_CEL = _build_has_any_cel(
    name for name, launcher_type in _LAUNCHERS.items() if launcher_type.command_starts_ranks
)
_ACCEPTS_MPIRUN_CEL = _build_has_any_cel(
    name for name, launcher_type in _LAUNCHERS.items() if launcher_type.accepts_mpirun
)

LAUNCH_RULES = (
    Rule(
        schema_paths=("spec.launcher",),
        rationale="Two launchers would start the ranks twice, and without a launcher no rank would start.",
        message=f"exactly one of {', '.join(_FIRST_LAUNCHERS)} and {_LAST_LAUNCHER} must be set, for example torchrun: "
        "{}",
        find_violations=_check_launchers,
        cel=f"[{', '.join(f'has(self.{name})' for name in _LAUNCHERS)}].exists_one(chosen, chosen)",
    ),
    Rule(
        schema_paths=("spec.launcher.torchrun.args[]",),
        rationale="A second rendezvous or world size would contradict the one in the status.",
        message="muster sets this option of torchrun itself, from nodes, procsPerNode and command; remove the option",
        find_violations=_check_torchrun_options,
        cel=f"!self.matches('^(-m.*|-h.*|--|--({_OPTION_PATTERN})(=.*)?)$')",
    ),
    Rule(
        schema_paths=("spec.launcher.torchrun.args",),
        rationale="torchrun takes the first argument that is not an option as the script to run.",
        message="torchrun's options begin with a dash; the script and its arguments belong in spec.command",
        find_violations=_check_torchrun_arguments,
        cel="self.size() == 0 || self[0].startsWith('-')",
    ),
    Rule(
        schema_paths=("spec.command",),
        rationale="muster can't start a program without a name.",
        message="the first entry must be the program to start",
        find_violations=_check_empty_command,
        cel=r"self.size() == 0 || self[0].matches('[^\\s]')",
    ),
    Rule(
        schema_paths=("spec.command",),
        rationale="The system would search for a program with spaces in its name.",
        message="write each word as a separate entry: [python, train.py]; a whole line needs a shell: [sh, -c, ...]",
        find_violations=_check_unsplit_command,
    ),
    Rule(
        schema_paths=("spec",),
        rationale="Each rank would start the same number of ranks again.",
        message="this command starts ranks itself: set spec.command to the script alone, such as [python, train.py], "
        "or use launcher: {perNode: {}}",
        find_violations=_check_launcher_in_launcher,
        cel=f"{_STARTS_RANKS_CEL} || self.command.size() == 0"
        f" || !self.command[0].matches('(^|/)({'|'.join(_LAUNCHER_COMMANDS)})$')",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="Each rank would start the same number of ranks again through mpirun.",
        message="mpirun starts ranks itself: use launcher: {mpi: {}}, and set spec.command to the whole mpirun "
        "command, or to its program alone",
        find_violations=_check_mpirun_in_launcher,
        cel=f"{_ACCEPTS_MPIRUN_CEL} || self.command.size() == 0 || "
        f"!self.command[0].matches('(^|/)({MPIRUN_PATTERN})$')",
    ),
    Rule(
        schema_paths=("spec.image",),
        rationale="With a stray newline, the pull fails as if the image did not exist.",
        message="an image's name has no spaces or line ends in it; remove them",
        find_violations=_check_image,
        cel=r"!self.matches('\\s')",
    ),
    Rule(
        schema_paths=("spec.network.interface",),
        rationale="The communication library would ignore an unknown form and choose an interface itself.",
        message="allowed are Auto, names and prefixes (eth0,ib*), exclusions (^docker,lo) and an address range "
        "(10.0.0.0/16)",
        find_violations=_check_interface,
        cel=f"self == 'Auto' || (self.lowerAscii() != 'auto' && self.matches('{_NAMES_CEL}')) || isCIDR(self)",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="The rank store and the status are sized for this number.",
        message=f"a job has at most {MAX_WORLD_SIZE} ranks (nodes x procsPerNode)",
        find_violations=_check_world,
        cel=f"type(self.procsPerNode) == string || (self.nodes * int(self.procsPerNode) <= {MAX_WORLD_SIZE}"
        f" && (!has(self.elastic) || self.elastic.maxNodes * int(self.procsPerNode) <= {MAX_WORLD_SIZE}))",
    ),
)
