"""Rules about `spec.launcher.mpi`: which options of mpirun are muster's, and what words its `args` may have."""

import itertools
import posixpath
import re
from collections.abc import Callable, Iterator

from muster.api.document import JSON, Path, quoted
from muster.api.mpi_options import (
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
from muster.api.mpi_words import Option, options
from muster.api.names import TRAINER
from muster.api.rule import Breach, Rule
from muster.api.spec import Spec
from muster.api.template_shape import containers, entries_of
from muster_worker.contract.schema import Mpi

_ARGS: Path = ("launcher", "mpi", "args")

RUNNERS = "|".join(Mpi.RUNNERS).replace(".", "[.]")
"""As a part of a regular expression."""

_SHELLS = ("sh", "ash", "bash", "dash", "ksh", "zsh")

_IN_A_LINE = re.compile(rf"(^|[\s;&|(])([^\s;&|()'\"]*/)?({RUNNERS})\s")

_HOW_MANY = ("n", "np", "c")
_WHERE = ("hostfile", "machinefile", "default-hostfile", "f")
_OPERATORS_HOSTFILE = "/etc/mpi/hostfile"
"""Where mpi-operator puts it: configMountPath and hostfileName of its mpi_job_controller.go."""

_Names = Callable[[str], tuple[str, ...]]


def is_runner(program: str) -> bool:
    """Whether a command's first word is an mpirun."""
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
    """What is known of the options of an mpirun of the owner's own; none where several programs share the world."""
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
    """No argument is one of these options of the implementation's family, nor matches one of `more`."""
    families = ((OPEN_MPI_FAMILY, names(Mpi.OPEN_MPI)), (HYDRA_FAMILY, names(Mpi.MPICH)))
    checks = [
        *(f"(!(self.implementation in {list(known)}) || !arg.matches('{_pattern(own)}'))" for known, own in families),
        *(f"!arg.matches('{pattern}')" for pattern in more),
    ]
    return f"!has(self.args) || self.args.all(arg, {' && '.join(checks)})"


def _pattern(names: tuple[str, ...]) -> str:
    return f"^--?({'|'.join(names)})(=.*)?$"


MPI_RULES = (
    Rule(
        places=("spec.launcher.mpi",),
        why="Another world or another place of its ranks would contradict what the status speaks of.",
        sentence="muster says how many ranks there are and where, from nodes and procsPerNode; remove it, or write "
        "the whole mpirun into spec.command",
        breaches=_world,
        cel=_cel(world_options),
    ),
    Rule(
        places=("spec.launcher.mpi",),
        why="mpirun would look for sshd on the nodes, or for daemons that do not run.",
        sentence="muster's agents start the daemons on the other nodes and hand on their environment; remove it",
        breaches=_way,
        cel=_cel(way_options, f"^({'|'.join(PARAMETERS)})$"),
    ),
    Rule(
        places=("spec.launcher.mpi",),
        why="A job that did nothing would have succeeded.",
        sentence="with this option mpirun ends with success before any rank has started; remove it",
        breaches=_end,
        cel=_cel(end_options, f"^({'|'.join(STOPS)})$"),
    ),
    Rule(
        places=("spec",),
        why="It would be overwritten without a word, or the daemons be started by ssh.",
        sentence="this variable is how mpirun reaches other nodes, and muster's agents are the way; remove it",
        breaches=_variables,
        cel="!has(self.launcher.mpi) || !has(self.env)"
        f" || !self.env.exists(variable, variable.name in [{', '.join(repr(name) for name in VARIABLES)}])",
    ),
    Rule(
        places=("spec.launcher.mpi.args",),
        why="mpirun would take the first word that belongs to no option for the program to run.",
        sentence="mpirun's options begin with a dash; the program and its arguments belong in spec.command",
        breaches=_words,
        cel="self.size() == 0 || self[0].startsWith('-') && !self.exists(arg, arg in ['--', ':'])",
    ),
    Rule(
        places=("spec.launcher.mpi.args",),
        why="mpirun would take the beginning of the ranks' command for the value.",
        sentence="this option of mpirun takes more words than follow it; add them, or remove it",
        breaches=_cut_off,
    ),
    Rule(
        places=("spec",),
        why="There is no second mpirun that they could be given to.",
        sentence="the options of an mpirun of your own stand in spec.command; move them there",
        breaches=_args_beside_runner,
        cel="!has(self.launcher.mpi) || !has(self.launcher.mpi.args) || self.launcher.mpi.args.size() == 0"
        f" || self.command.size() == 0 || !self.command[0].matches('(^|/)({RUNNERS})$')",
    ),
    Rule(
        places=("spec",),
        why="Another world than the job's is a failure, and known before anything runs.",
        sentence="an mpirun of your own has to start nodes x procsPerNode ranks; change the one or the other",
        breaches=_own_world,
    ),
    Rule(
        places=("spec.command",),
        why="mpirun would fail over a file that is mpi-operator's.",
        sentence=f"there is no {_OPERATORS_HOSTFILE} here, mpirun knows the nodes by its environment; leave it out",
        breaches=_own_hostfile,
    ),
    Rule(
        places=("spec.command",),
        why="Where the nested mpirun works the job's work is done once by each rank, and reported as a success.",
        sentence="each rank would start this mpirun; write it into spec.command without the shell, or leave it out",
        breaches=_in_a_shell,
    ),
)
