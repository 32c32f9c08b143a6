"""Rules about `spec.launcher.mpi`: which options of mpirun muster sets, and which arguments `args` may contain."""

import itertools
import posixpath
import re
from collections.abc import Callable, Iterator

from muster.api.document import JSON, Path, quoted
from muster.api.names import TRAINER
from muster.api.spec.job import Spec
from muster.api.validation.rule import Breach, Rule
from muster.api.validation.rules.mpi.options import (
    HYDRA_FAMILY,
    OPEN_MPI_FAMILY,
    PARAMETERS,
    STOPS,
    TWO_VALUES,
    VARIABLES,
    end_options,
    is_option,
    way_options,
    world_options,
)
from muster.api.validation.rules.mpi.words import Option, options
from muster.api.validation.rules.pods.template_shape import containers, entries_of
from muster_worker.contract.schema import Mpi

_ARGS: Path = ("launcher", "mpi", "args")

RUNNERS = "|".join(Mpi.RUNNERS).replace(".", "[.]")
"""An alternation for use inside regular expressions."""

_SHELLS = ("sh", "ash", "bash", "dash", "ksh", "zsh")

_IN_A_LINE = re.compile(rf"(^|[\s;&|(])([^\s;&|()'\"]*/)?({RUNNERS})\s")

_HOW_MANY = ("n", "np", "c")
_WHERE = ("hostfile", "machinefile", "default-hostfile", "f")
_OPERATORS_HOSTFILE = "/etc/mpi/hostfile"
"""The path that mpi-operator uses: configMountPath and hostfileName in its mpi_job_controller.go."""

_Names = Callable[[str], tuple[str, ...]]


def is_runner(program: str) -> bool:
    """Whether a program is an mpirun."""
    return posixpath.basename(program) in Mpi.RUNNERS


def _args(spec: Spec) -> tuple[str, ...]:
    return spec.launcher.mpi.args if spec.launcher.mpi is not None else ()


def _options(spec: Spec, names: _Names) -> Iterator[Breach]:
    implementation = spec.launcher.mpi.implementation if spec.launcher.mpi is not None else Mpi.AUTO
    for index, argument in enumerate(_args(spec)):
        if is_option(argument, names(implementation)):
            yield Breach((*_ARGS, index), quoted(argument))


def _world(spec: Spec) -> Iterator[Breach]:
    return _options(spec, world_options)


def _way(spec: Spec) -> Iterator[Breach]:
    yield from _options(spec, way_options)
    yield from _arguments(spec, PARAMETERS)


def _end(spec: Spec) -> Iterator[Breach]:
    yield from _options(spec, end_options)
    yield from _arguments(spec, STOPS)


def _arguments(spec: Spec, words: tuple[str, ...]) -> Iterator[Breach]:
    for index, argument in enumerate(_args(spec)):
        if argument in words:
            yield Breach((*_ARGS, index), quoted(argument))


def _words(spec: Spec) -> Iterator[Breach]:
    args = _args(spec)
    for index, argument in enumerate(args):
        if argument in ("--", ":") or not (argument.startswith("-") or _is_value(args, index)):
            yield Breach((*_ARGS, index), quoted(argument))


def _is_value(args: tuple[str, ...], index: int) -> bool:
    before = args[max(0, index - 2) : index]
    if before and before[-1].startswith("-"):
        return "=" not in before[-1]
    return len(before) > 1 and is_option(before[0], TWO_VALUES)


def _cut_off(spec: Spec) -> Iterator[Breach]:
    args = _args(spec)
    last = next(reversed(tuple(options(args))), None)
    if last is not None and last.missing:
        yield Breach((*_ARGS, last.index), f"{quoted(args[last.index])} at the end")


def _args_beside_runner(spec: Spec) -> Iterator[Breach]:
    if _args(spec) and is_runner(spec.command[0]):
        yield Breach(_ARGS, f"some beside {quoted(spec.command[0])}")


def _own(spec: Spec) -> tuple[Option, ...]:
    """The recognized options of an mpirun that is the command itself; none if it starts several programs (`:`)."""
    if spec.launcher.mpi is None or not is_runner(spec.command[0]) or ":" in spec.command:
        return ()
    return tuple(options(spec.command[1:]))


def _own_world(spec: Spec) -> Iterator[Breach]:
    procs = spec.procs_per_node
    if procs == "Auto":
        return
    for option in _own(spec):
        number = option.values[0] if option.name in _HOW_MANY and option.values else ""
        if re.fullmatch("[0-9]{1,9}", number) and int(number) != spec.nodes * procs:
            yield Breach(("command", 1 + option.at), f"{quoted(number)} beside {spec.nodes} nodes x {procs}")


def _own_hostfile(spec: Spec) -> Iterator[Breach]:
    for option in _own(spec):
        if option.name in _WHERE and option.values == (_OPERATORS_HOSTFILE,):
            yield Breach(("command", 1 + option.index), quoted(spec.command[1 + option.index]))


def _in_a_shell(spec: Spec) -> Iterator[Breach]:
    command = spec.command
    if spec.launcher.mpi is None or posixpath.basename(command[0]) not in _SHELLS:
        return
    for index, (option, line) in enumerate(itertools.pairwise(command), 1):
        # bash -lc as well
        if option.startswith("-") and option.endswith("c") and _IN_A_LINE.search(line):
            yield Breach(("command", index), quoted(line))


def _variables(spec: Spec) -> Iterator[Breach]:
    if spec.launcher.mpi is None:
        return
    lists: list[tuple[Path, JSON]] = [(("env",), [{"name": variable.name} for variable in spec.env])]
    lists += [((*path, "env"), each.get("env")) for path, each in containers(spec) if each.get("name") == TRAINER]
    for path, entries in lists:
        for index, variable in entries_of(entries):
            if variable.get("name") in VARIABLES:
                yield Breach((*path, index, "name"), str(variable["name"]))


def _cel(names: _Names, *more: str) -> str:
    """CEL: no argument is one of the implementation family's options or matches one of `more`."""
    families = ((OPEN_MPI_FAMILY, names(Mpi.OPEN_MPI)), (HYDRA_FAMILY, names(Mpi.MPICH)))
    checks = [
        *(f"(!(self.implementation in {list(family)}) || !arg.matches('{_pattern(own)}'))" for family, own in families),
        *(f"!arg.matches('{pattern}')" for pattern in more),
    ]
    return f"!has(self.args) || self.args.all(arg, {' && '.join(checks)})"


def _pattern(names: tuple[str, ...]) -> str:
    return f"^--?({'|'.join(names)})(=.*)?$"


MPI_RULES = (
    Rule(
        places=("spec.launcher.mpi",),
        why="Another world size or other hosts would contradict the status.",
        sentence="muster sets the number of ranks and their hosts, from nodes and procsPerNode; remove it, or write "
        "the whole mpirun command into spec.command",
        breaches=_world,
        cel=_cel(world_options),
    ),
    Rule(
        places=("spec.launcher.mpi",),
        why="mpirun would look for sshd on the nodes, or for daemons that do not run.",
        sentence="muster's agents start the daemons on the other nodes and pass on their environment; remove it",
        breaches=_way,
        cel=_cel(way_options, f"^({'|'.join(PARAMETERS)})$"),
    ),
    Rule(
        places=("spec.launcher.mpi",),
        why="A job that did nothing would be reported as complete.",
        sentence="with this option mpirun exits with 0 before it starts any rank; remove it",
        breaches=_end,
        cel=_cel(end_options, f"^({'|'.join(STOPS)})$"),
    ),
    Rule(
        places=("spec",),
        why="muster would overwrite it silently, or mpirun would start its daemons through ssh.",
        sentence="this variable sets how mpirun reaches other nodes, and muster's agents do that; remove it",
        breaches=_variables,
        cel="!has(self.launcher.mpi) || !has(self.env)"
        f" || !self.env.exists(variable, variable.name in [{', '.join(repr(name) for name in VARIABLES)}])",
    ),
    Rule(
        places=("spec.launcher.mpi.args",),
        why="mpirun takes the first argument that belongs to no option for the program.",
        sentence="mpirun's options begin with a dash; the program and its arguments belong in spec.command",
        breaches=_words,
        cel="self.size() == 0 || self[0].startsWith('-') && !self.exists(arg, arg in ['--', ':'])",
    ),
    Rule(
        places=("spec.launcher.mpi.args",),
        why="mpirun would read the beginning of the ranks' command as the value.",
        sentence="this option of mpirun lacks a value; add it, or remove the option",
        breaches=_cut_off,
    ),
    Rule(
        places=("spec",),
        why="muster adds no mpirun of its own that could take them.",
        sentence="the command is itself an mpirun: move these options into spec.command",
        breaches=_args_beside_runner,
        cel="!has(self.launcher.mpi) || !has(self.launcher.mpi.args) || self.launcher.mpi.args.size() == 0"
        f" || self.command.size() == 0 || !self.command[0].matches('(^|/)({RUNNERS})$')",
    ),
    Rule(
        places=("spec",),
        why="Another number of ranks than the job's would fail after the start.",
        sentence="the mpirun in spec.command has to start nodes x procsPerNode ranks; change one of them",
        breaches=_own_world,
    ),
    Rule(
        places=("spec.command",),
        why="mpirun would fail because the file does not exist: mpi-operator mounts it.",
        sentence=f"{_OPERATORS_HOSTFILE} doesn't exist here, and mpirun gets the nodes from its environment; remove it",
        breaches=_own_hostfile,
    ),
    Rule(
        places=("spec.command",),
        why="If the nested mpirun works, each rank does the job's whole work, and the job is reported as complete.",
        sentence="each rank would start this mpirun; write it into spec.command without the shell, or remove it",
        breaches=_in_a_shell,
    ),
)
