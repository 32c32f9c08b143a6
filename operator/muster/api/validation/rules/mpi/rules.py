"""Rules about `spec.launcher.mpi` and about mpirun in `spec.command`."""

import itertools
import posixpath
import re
from collections.abc import Callable, Iterator

from muster.api.document import JSON, FieldPath, quote
from muster.api.names import TRAINER_CONTAINER
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.mpi.command_line import Option, parse_options
from muster.api.validation.rules.mpi.options import (
    DO_NOT_LAUNCH_SYNONYMS,
    HYDRA_FAMILY,
    MCA_PARAMETERS,
    OPEN_MPI_FAMILY,
    REMOTE_SHELL_VARIABLES,
    TWO_VALUE_OPTIONS,
    is_option,
    list_exit_options,
    list_remote_options,
    list_world_options,
)
from muster.api.validation.rules.pods.template_shape import enumerate_entries, list_containers
from muster_worker.contract.mpi import Mpi

_ARGS: FieldPath = ("launcher", "mpi", "args")

MPIRUN_PATTERN = "|".join(Mpi.RUNNERS).replace(".", "[.]")
"""A regular expression that matches the names of mpirun."""

_SHELLS = ("sh", "ash", "bash", "dash", "ksh", "zsh")

_MPIRUN_IN_SHELL_LINE = re.compile(rf"(^|[\s;&|(])([^\s;&|()'\"]*/)?({MPIRUN_PATTERN})\s")

_RANK_COUNT_OPTIONS = ("n", "np", "c")
_HOSTFILE_OPTIONS = ("hostfile", "machinefile", "default-hostfile", "f")
_MPI_OPERATOR_HOSTFILE = "/etc/mpi/hostfile"
"""mpi-operator's host file (configMountPath and hostfileName in its mpi_job_controller.go)."""

_ListOptions = Callable[[str], tuple[str, ...]]


def is_mpirun(program: str) -> bool:
    """Whether a program is an mpirun."""
    return posixpath.basename(program) in Mpi.RUNNERS


def _get_mpi_args(spec: Spec) -> tuple[str, ...]:
    return spec.launcher.mpi.args if spec.launcher.mpi is not None else ()


def _check_options(spec: Spec, list_options: _ListOptions) -> Iterator[Violation]:
    implementation = spec.launcher.mpi.implementation if spec.launcher.mpi is not None else Mpi.AUTO
    for index, argument in enumerate(_get_mpi_args(spec)):
        if is_option(argument, list_options(implementation)):
            yield Violation((*_ARGS, index), quote(argument))


def _check_world_size_options(spec: Spec) -> Iterator[Violation]:
    return _check_options(spec, list_world_options)


def _check_remote_options(spec: Spec) -> Iterator[Violation]:
    yield from _check_options(spec, list_remote_options)
    yield from _check_forbidden_arguments(spec, MCA_PARAMETERS)


def _check_exit_options(spec: Spec) -> Iterator[Violation]:
    yield from _check_options(spec, list_exit_options)
    yield from _check_forbidden_arguments(spec, DO_NOT_LAUNCH_SYNONYMS)


def _check_forbidden_arguments(spec: Spec, forbidden_arguments: tuple[str, ...]) -> Iterator[Violation]:
    for index, argument in enumerate(_get_mpi_args(spec)):
        if argument in forbidden_arguments:
            yield Violation((*_ARGS, index), quote(argument))


def _check_program_arguments(spec: Spec) -> Iterator[Violation]:
    args = _get_mpi_args(spec)
    for index, argument in enumerate(args):
        if argument in ("--", ":") or not (argument.startswith("-") or _is_option_value(args, index)):
            yield Violation((*_ARGS, index), quote(argument))


def _is_option_value(args: tuple[str, ...], index: int) -> bool:
    previous_arguments = args[max(0, index - 2) : index]
    if previous_arguments and previous_arguments[-1].startswith("-"):
        return "=" not in previous_arguments[-1]
    return len(previous_arguments) > 1 and is_option(previous_arguments[0], TWO_VALUE_OPTIONS)


def _check_missing_value(spec: Spec) -> Iterator[Violation]:
    args = _get_mpi_args(spec)
    last_option = next(reversed(tuple(parse_options(args))), None)
    if last_option is not None and last_option.missing_values:
        yield Violation((*_ARGS, last_option.index), f"{quote(args[last_option.index])} at the end")


def _check_args_with_mpirun_command(spec: Spec) -> Iterator[Violation]:
    if _get_mpi_args(spec) and is_mpirun(spec.command[0]):
        yield Violation(_ARGS, f"arguments together with the command {quote(spec.command[0])}")


def _parse_command_options(spec: Spec) -> tuple[Option, ...]:
    """Return the known options of an mpirun command; () for other commands and for MPMD commands (with `:`)."""
    if spec.launcher.mpi is None or not is_mpirun(spec.command[0]) or ":" in spec.command:
        return ()
    return tuple(parse_options(spec.command[1:]))


def _check_command_ranks(spec: Spec) -> Iterator[Violation]:
    procs = spec.procs_per_node
    for option in _parse_command_options(spec):
        number = option.values[0] if option.name in _RANK_COUNT_OPTIONS and option.values else ""
        if not re.fullmatch("[0-9]{1,9}", number):
            continue
        # `kubectl scale` changes the number of nodes later, and then a fixed number of ranks would be wrong.
        if spec.elastic is not None:
            yield Violation(("command", 1 + option.value_index), f"{quote(number)} in an elastic job")
        elif procs != "Auto" and int(number) != spec.nodes * procs:
            yield Violation(("command", 1 + option.value_index), f"{quote(number)} for {spec.nodes} nodes x {procs}")


def _check_command_hostfile(spec: Spec) -> Iterator[Violation]:
    for option in _parse_command_options(spec):
        if option.name in _HOSTFILE_OPTIONS and option.values == (_MPI_OPERATOR_HOSTFILE,):
            yield Violation(("command", 1 + option.index), quote(spec.command[1 + option.index]))


def _check_nested_mpirun(spec: Spec) -> Iterator[Violation]:
    command = spec.command
    if spec.launcher.mpi is None or posixpath.basename(command[0]) not in _SHELLS:
        return
    for index, (option, line) in enumerate(itertools.pairwise(command), 1):
        # The option may combine several letters, as in bash -lc.
        if option.startswith("-") and option.endswith("c") and _MPIRUN_IN_SHELL_LINE.search(line):
            yield Violation(("command", index), quote(line))


def _check_remote_shell_variables(spec: Spec) -> Iterator[Violation]:
    if spec.launcher.mpi is None:
        return
    variable_lists: list[tuple[FieldPath, JSON]] = [(("env",), [{"name": variable.name} for variable in spec.env])]
    variable_lists += [
        ((*path, "env"), container.get("env"))
        for path, container in list_containers(spec)
        if container.get("name") == TRAINER_CONTAINER
    ]
    for path, entries in variable_lists:
        for index, variable in enumerate_entries(entries):
            if variable.get("name") in REMOTE_SHELL_VARIABLES:
                yield Violation((*path, index, "name"), str(variable["name"]))


def _build_options_cel(list_options: _ListOptions, *patterns: str) -> str:
    """Build the CEL rule that no argument is one of the options or matches one of `patterns`."""
    families = ((OPEN_MPI_FAMILY, list_options(Mpi.OPEN_MPI)), (HYDRA_FAMILY, list_options(Mpi.MPICH)))
    checks = [
        *(
            f"(!(self.implementation in {list(family)}) || !arg.matches('{_build_option_pattern(options)}'))"
            for family, options in families
        ),
        *(f"!arg.matches('{pattern}')" for pattern in patterns),
    ]
    return f"!has(self.args) || self.args.all(arg, {' && '.join(checks)})"


def _build_option_pattern(option_names: tuple[str, ...]) -> str:
    return f"^--?({'|'.join(option_names)})(=.*)?$"


MPI_RULES = (
    Rule(
        schema_paths=("spec.launcher.mpi",),
        rationale="Another world size or other hosts would contradict the status.",
        message="muster sets the number of ranks and their hosts, from nodes and procsPerNode; remove the option, or "
        "write the whole mpirun command into spec.command",
        find_violations=_check_world_size_options,
        cel=_build_options_cel(list_world_options),
    ),
    Rule(
        schema_paths=("spec.launcher.mpi",),
        rationale="mpirun would look for sshd on the nodes, or for daemons that do not run.",
        message="muster's agents start the daemons on the other nodes, with the agents' environment; remove this "
        "option",
        find_violations=_check_remote_options,
        cel=_build_options_cel(list_remote_options, f"^({'|'.join(MCA_PARAMETERS)})$"),
    ),
    Rule(
        schema_paths=("spec.launcher.mpi",),
        rationale="muster would report a job as complete although it started no rank.",
        message="with this option mpirun exits with code 0 and starts no rank; remove the option",
        find_violations=_check_exit_options,
        cel=_build_options_cel(list_exit_options, f"^({'|'.join(DO_NOT_LAUNCH_SYNONYMS)})$"),
    ),
    Rule(
        schema_paths=("spec",),
        rationale="muster would overwrite the variable, or mpirun would start its daemons through ssh.",
        message="this variable sets how mpirun starts daemons on other nodes, but muster's agents start them; remove "
        "the variable",
        find_violations=_check_remote_shell_variables,
        cel="!has(self.launcher.mpi) || !has(self.env) || !self.env.exists(variable, "
        f"variable.name in [{', '.join(repr(name) for name in REMOTE_SHELL_VARIABLES)}])",
    ),
    Rule(
        schema_paths=("spec.launcher.mpi.args",),
        rationale="mpirun takes the first argument that is not an option as the program to run.",
        message="mpirun's options begin with a dash; the program and its arguments belong in spec.command",
        find_violations=_check_program_arguments,
        cel="self.size() == 0 || self[0].startsWith('-') && !self.exists(arg, arg in ['--', ':'])",
    ),
    Rule(
        schema_paths=("spec.launcher.mpi.args",),
        rationale="mpirun would read the beginning of the ranks' command as the value.",
        message="this option of mpirun lacks a value; add the value, or remove the option",
        find_violations=_check_missing_value,
    ),
    Rule(
        schema_paths=("spec",),
        rationale="muster starts no mpirun of its own for this command, so the arguments would have no effect.",
        message="the command is itself an mpirun: move these options into spec.command",
        find_violations=_check_args_with_mpirun_command,
        cel="!has(self.launcher.mpi) || !has(self.launcher.mpi.args) || self.launcher.mpi.args.size() == 0"
        f" || self.command.size() == 0 || !self.command[0].matches('(^|/)({MPIRUN_PATTERN})$')",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="With a different number of ranks, the job would fail after its start.",
        message="the mpirun in spec.command has to start nodes x procsPerNode ranks; correct the numbers, or "
        "remove the option (in an elastic job, remove it)",
        find_violations=_check_command_ranks,
    ),
    Rule(
        schema_paths=("spec.command",),
        rationale="Only mpi-operator mounts this file, so mpirun would fail.",
        message=f"{_MPI_OPERATOR_HOSTFILE} doesn't exist here, and mpirun gets the nodes from its environment; remove "
        "the option",
        find_violations=_check_command_hostfile,
    ),
    Rule(
        schema_paths=("spec.command",),
        rationale="Each rank would start mpirun and do the work of the whole job.",
        message="each rank would start this mpirun; write the mpirun command into spec.command without a shell, or "
        "remove mpirun",
        find_violations=_check_nested_mpirun,
    ),
)
