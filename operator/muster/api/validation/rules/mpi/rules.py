"""Rules about `spec.launcher.mpi`: which options of mpirun muster sets, and which arguments `args` may contain."""

import itertools
import posixpath
import re
from collections.abc import Callable, Iterator

from muster.api.document import JSON, FieldPath, quote
from muster.api.names import TRAINER
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.mpi.command_line import Option, parse_options
from muster.api.validation.rules.mpi.options import (
    DO_NOT_LAUNCH_SYNONYMS,
    HYDRA_FAMILY,
    OPEN_MPI_FAMILY,
    PARAMETERS,
    TWO_VALUE_OPTIONS,
    VARIABLES,
    exit_options,
    is_option,
    remote_options,
    world_options,
)
from muster.api.validation.rules.pods.template_shape import containers, entries_of
from muster_worker.contract.schema import Mpi

_ARGS: FieldPath = ("launcher", "mpi", "args")

MPIRUN_PATTERN = "|".join(Mpi.RUNNERS).replace(".", "[.]")
"""The names of mpirun, as an alternation for regular expressions."""

_SHELLS = ("sh", "ash", "bash", "dash", "ksh", "zsh")

_MPIRUN_IN_SHELL_LINE = re.compile(rf"(^|[\s;&|(])([^\s;&|()'\"]*/)?({MPIRUN_PATTERN})\s")

_RANK_COUNT_OPTIONS = ("n", "np", "c")
_HOST_OPTIONS = ("hostfile", "machinefile", "default-hostfile", "f")
_OPERATORS_HOSTFILE = "/etc/mpi/hostfile"
"""The path that mpi-operator uses: configMountPath and hostfileName in its mpi_job_controller.go."""

_OptionsOf = Callable[[str], tuple[str, ...]]


def is_mpirun(program: str) -> bool:
    """Whether a program is an mpirun."""
    return posixpath.basename(program) in Mpi.RUNNERS


def _mpi_args(spec: Spec) -> tuple[str, ...]:
    return spec.launcher.mpi.args if spec.launcher.mpi is not None else ()


def _check_options(spec: Spec, names: _OptionsOf) -> Iterator[Violation]:
    implementation = spec.launcher.mpi.implementation if spec.launcher.mpi is not None else Mpi.AUTO
    for index, argument in enumerate(_mpi_args(spec)):
        if is_option(argument, names(implementation)):
            yield Violation((*_ARGS, index), quote(argument))


def _check_world_options(spec: Spec) -> Iterator[Violation]:
    return _check_options(spec, world_options)


def _check_remote_options(spec: Spec) -> Iterator[Violation]:
    yield from _check_options(spec, remote_options)
    yield from _check_arguments(spec, PARAMETERS)


def _check_exit_options(spec: Spec) -> Iterator[Violation]:
    yield from _check_options(spec, exit_options)
    yield from _check_arguments(spec, DO_NOT_LAUNCH_SYNONYMS)


def _check_arguments(spec: Spec, words: tuple[str, ...]) -> Iterator[Violation]:
    for index, argument in enumerate(_mpi_args(spec)):
        if argument in words:
            yield Violation((*_ARGS, index), quote(argument))


def _check_program_words(spec: Spec) -> Iterator[Violation]:
    args = _mpi_args(spec)
    for index, argument in enumerate(args):
        if argument in ("--", ":") or not (argument.startswith("-") or _is_value(args, index)):
            yield Violation((*_ARGS, index), quote(argument))


def _is_value(args: tuple[str, ...], index: int) -> bool:
    before = args[max(0, index - 2) : index]
    if before and before[-1].startswith("-"):
        return "=" not in before[-1]
    return len(before) > 1 and is_option(before[0], TWO_VALUE_OPTIONS)


def _check_missing_value(spec: Spec) -> Iterator[Violation]:
    args = _mpi_args(spec)
    last = next(reversed(tuple(parse_options(args))), None)
    if last is not None and last.missing:
        yield Violation((*_ARGS, last.index), f"{quote(args[last.index])} at the end")


def _check_args_beside_runner(spec: Spec) -> Iterator[Violation]:
    if _mpi_args(spec) and is_mpirun(spec.command[0]):
        yield Violation(_ARGS, f"some beside {quote(spec.command[0])}")


def _command_options(spec: Spec) -> tuple[Option, ...]:
    """Return the recognized options of the command if it is an mpirun; none if it starts several programs (`:`)."""
    if spec.launcher.mpi is None or not is_mpirun(spec.command[0]) or ":" in spec.command:
        return ()
    return tuple(parse_options(spec.command[1:]))


def _check_command_ranks(spec: Spec) -> Iterator[Violation]:
    procs = spec.procs_per_node
    if procs == "Auto":
        return
    for option in _command_options(spec):
        number = option.values[0] if option.name in _RANK_COUNT_OPTIONS and option.values else ""
        if re.fullmatch("[0-9]{1,9}", number) and int(number) != spec.nodes * procs:
            yield Violation(("command", 1 + option.value_index), f"{quote(number)} beside {spec.nodes} nodes x {procs}")


def _check_command_hostfile(spec: Spec) -> Iterator[Violation]:
    for option in _command_options(spec):
        if option.name in _HOST_OPTIONS and option.values == (_OPERATORS_HOSTFILE,):
            yield Violation(("command", 1 + option.index), quote(spec.command[1 + option.index]))


def _check_nested_mpirun(spec: Spec) -> Iterator[Violation]:
    command = spec.command
    if spec.launcher.mpi is None or posixpath.basename(command[0]) not in _SHELLS:
        return
    for index, (option, line) in enumerate(itertools.pairwise(command), 1):
        # also combined options, such as bash -lc
        if option.startswith("-") and option.endswith("c") and _MPIRUN_IN_SHELL_LINE.search(line):
            yield Violation(("command", index), quote(line))


def _check_variables(spec: Spec) -> Iterator[Violation]:
    if spec.launcher.mpi is None:
        return
    lists: list[tuple[FieldPath, JSON]] = [(("env",), [{"name": variable.name} for variable in spec.env])]
    lists += [
        ((*path, "env"), container.get("env"))
        for path, container in containers(spec)
        if container.get("name") == TRAINER
    ]
    for path, entries in lists:
        for index, variable in entries_of(entries):
            if variable.get("name") in VARIABLES:
                yield Violation((*path, index, "name"), str(variable["name"]))


def _options_cel(names: _OptionsOf, *more: str) -> str:
    """Build a CEL rule: no argument is an option of the implementation's family, or matches one of `more`."""
    families = ((OPEN_MPI_FAMILY, names(Mpi.OPEN_MPI)), (HYDRA_FAMILY, names(Mpi.MPICH)))
    checks = [
        *(
            f"(!(self.implementation in {list(family)}) || !arg.matches('{_pattern(options)}'))"
            for family, options in families
        ),
        *(f"!arg.matches('{pattern}')" for pattern in more),
    ]
    return f"!has(self.args) || self.args.all(arg, {' && '.join(checks)})"


def _pattern(names: tuple[str, ...]) -> str:
    return f"^--?({'|'.join(names)})(=.*)?$"


MPI_RULES = (
    Rule(
        schema_paths=("spec.launcher.mpi",),
        why="Another world size or other hosts would contradict the status.",
        message="muster sets the number of ranks and their hosts, from nodes and procsPerNode; remove it, or write "
        "the whole mpirun command into spec.command",
        find_violations=_check_world_options,
        cel=_options_cel(world_options),
    ),
    Rule(
        schema_paths=("spec.launcher.mpi",),
        why="mpirun would look for sshd on the nodes, or for daemons that do not run.",
        message="muster's agents start the daemons on the other nodes and pass on their environment; remove it",
        find_violations=_check_remote_options,
        cel=_options_cel(remote_options, f"^({'|'.join(PARAMETERS)})$"),
    ),
    Rule(
        schema_paths=("spec.launcher.mpi",),
        why="A job that did nothing would be reported as complete.",
        message="with this option mpirun exits with 0 before it starts any rank; remove it",
        find_violations=_check_exit_options,
        cel=_options_cel(exit_options, f"^({'|'.join(DO_NOT_LAUNCH_SYNONYMS)})$"),
    ),
    Rule(
        schema_paths=("spec",),
        why="muster would overwrite it silently, or mpirun would start its daemons through ssh.",
        message="this variable sets how mpirun reaches other nodes, and muster's agents do that; remove it",
        find_violations=_check_variables,
        cel="!has(self.launcher.mpi) || !has(self.env)"
        f" || !self.env.exists(variable, variable.name in [{', '.join(repr(name) for name in VARIABLES)}])",
    ),
    Rule(
        schema_paths=("spec.launcher.mpi.args",),
        why="mpirun takes the first argument that belongs to no option for the program.",
        message="mpirun's options begin with a dash; the program and its arguments belong in spec.command",
        find_violations=_check_program_words,
        cel="self.size() == 0 || self[0].startsWith('-') && !self.exists(arg, arg in ['--', ':'])",
    ),
    Rule(
        schema_paths=("spec.launcher.mpi.args",),
        why="mpirun would read the beginning of the ranks' command as the value.",
        message="this option of mpirun lacks a value; add it, or remove the option",
        find_violations=_check_missing_value,
    ),
    Rule(
        schema_paths=("spec",),
        why="muster adds no mpirun of its own that could take them.",
        message="the command is itself an mpirun: move these options into spec.command",
        find_violations=_check_args_beside_runner,
        cel="!has(self.launcher.mpi) || !has(self.launcher.mpi.args) || self.launcher.mpi.args.size() == 0"
        f" || self.command.size() == 0 || !self.command[0].matches('(^|/)({MPIRUN_PATTERN})$')",
    ),
    Rule(
        schema_paths=("spec",),
        why="Another number of ranks than the job's would fail after the start.",
        message="the mpirun in spec.command has to start nodes x procsPerNode ranks; change one of them",
        find_violations=_check_command_ranks,
    ),
    Rule(
        schema_paths=("spec.command",),
        why="mpirun would fail because the file does not exist: mpi-operator mounts it.",
        message=f"{_OPERATORS_HOSTFILE} doesn't exist here, and mpirun gets the nodes from its environment; remove it",
        find_violations=_check_command_hostfile,
    ),
    Rule(
        schema_paths=("spec.command",),
        why="If the nested mpirun works, each rank does the job's whole work, and the job is reported as complete.",
        message="each rank would start this mpirun; write it into spec.command without the shell, or remove it",
        find_violations=_check_nested_mpirun,
    ),
)
