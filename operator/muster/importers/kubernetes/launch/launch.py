"""Choose the launcher of a job whose pods all run the same command. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.document import JSON, quote
from muster.api.validation.rules.mpi.rules import is_mpirun
from muster.importers.kubernetes.launch.container_command import ContainerCommand, report_references
from muster.importers.kubernetes.launch.procs import has_devices, is_device, resolve_procs
from muster.importers.kubernetes.launch.script_launch import launch_script
from muster.importers.kubernetes.launch.shell_script import (
    NotSimple,
    ShellLine,
    Word,
    find_script,
    runs_file,
    split_script,
)
from muster.importers.kubernetes.launch.torchrun import TorchrunLine, UnknownOption, is_torchrun, parse_torchrun
from muster.importers.kubernetes.launch.world import TorchrunWorld, World, read_options
from muster.importers.kubernetes.references import resolve_variable
from muster.importers.kubernetes.report import Report

_ACCELERATE = "accelerate"
_REFUSED_PROGRAMS = {
    "deepspeed": "it starts ranks on other nodes by ssh; use torchrun, or an MPIJob's mpirun",
    "horovodrun": "it starts ranks on other nodes by ssh; use mpirun",
    "ray": "muster starts no Ray cluster; run the training script itself",
    "tune": "muster can't read its options; run the recipe's script with torchrun",
}
_LAUNCHER_IN_SCRIPT = re.compile(r"(^|[\s;&|(/])(torchrun|accelerate\s+launch|torch\.distributed\.(run|launch))\s")

_MPIRUN_IN_SCRIPT = re.compile(r"(^|[\s;&|(/])(mpirun|mpiexec)\s")
_ONE_RANK = (None, 1, "1", "auto")


@dataclass(frozen=True)
class Launch:
    """How the ranks start: fields of the spec. `torchrun` is what torchrun's options say; None for other launchers."""

    launcher: dict[str, JSON]
    command: tuple[str, ...]
    procs: int | str
    torchrun: TorchrunWorld | None = None


def find_launch(command: ContainerCommand, world: World, report: Report) -> Launch | None:
    """Return how the ranks start; None with a problem."""
    program = posixpath.basename(command.words[0])
    if program in _REFUSED_PROGRAMS:
        report.add(command.location, f"found {quote(command.words[0])}: {_REFUSED_PROGRAMS[program]}")
        return None
    line = find_script(command.words)
    if line is not None:
        return _launch_shell(line, command, world, report)
    if is_torchrun(command.words):
        return _launch_torchrun([Word(word, "$(" in word) for word in command.words], command, world, report)
    if program == _ACCELERATE:
        return launch_accelerate(command, world, report)
    return _launch_program(command, world, report)


def _launch_shell(line: ShellLine, command: ContainerCommand, world: World, report: Report) -> Launch | None:
    words = _find_only_torchrun(line.script)
    if words is not None:
        return _launch_torchrun(words, command, world, report)
    if _LAUNCHER_IN_SCRIPT.search(line.script):
        result = launch_script(line.script, command, world, report)
        if result is None:
            return None
        text, options = result
        changed_words = (*command.words[: line.index], text)
        return Launch({"perNode": {}}, changed_words, options.procs or 1, options)
    return _launch_program(command, world, report)


def _find_only_torchrun(script: str) -> list[Word] | None:
    """Return the words of a script that only runs torchrun, and whose program needs no shell; else None."""
    try:
        commands = split_script(script)
        if len(commands) != 1:
            return None
        words = list(commands[0])
        words = words[1:] if words[0].text == "exec" else words
        if not is_torchrun([word.text for word in words]):
            return None
        parsed = parse_torchrun(words)
    except (NotSimple, UnknownOption):
        return None
    return None if any(word.expands for word in (*parsed.passed, *parsed.program)) else words


def _launch_torchrun(words: Sequence[Word], command: ContainerCommand, world: World, report: Report) -> Launch | None:
    try:
        line = parse_torchrun(words)
    except UnknownOption as option:
        report.add(command.location, f"found torchrun's option {option}, which muster doesn't know; remove it")
        return None
    texts = command.environment.texts
    own_options = {name: resolve_variable(word.text, texts) for name, word in line.options.items()}
    options = {**command.environment.torchrun_options, **own_options}
    result = read_options(options, world, command.location, report, lambda name: f"torchrun's --{name}")
    program = _find_program(line, command, report)
    if program is None or result.procs is None:
        return None
    args: list[JSON] = [word.text for word in line.passed]
    launcher: dict[str, JSON] = {"torchrun": {"args": args} if args else {}}
    return Launch(launcher, program, result.procs, result)


def _find_program(line: TorchrunLine, command: ContainerCommand, report: Report) -> tuple[str, ...] | None:
    words = tuple(word.text for word in line.program)
    if not words:
        report.add(command.location, "found torchrun without a script; add the script")
        return None
    if line.is_old_launcher and not line.has("use-env"):
        report.add(
            command.location,
            "found torch.distributed.launch, which gives the script --local-rank; read LOCAL_RANK in the script, and "
            "use torchrun",
        )
        return None
    if report_references(words, command, report):
        return None
    if line.has("no-python"):
        return words
    return (line.python, "-m", *words) if line.has("module") else (line.python, *words)


def launch_accelerate(command: ContainerCommand, world: World, report: Report) -> Launch | None:
    """Run `accelerate launch` once on each node, which reads its options from the command."""
    if report_references(command.words, command, report):
        return None
    if world.nodes > 1:
        report.add(
            command.location,
            "found accelerate launch on several nodes, whose options have addresses of the old pods; use torchrun, or "
            "a shell script with $NODE_RANK, $MASTER_ADDR and $MASTER_PORT",
        )
        return None
    options = read_options({}, world, command.location, report, str)
    return None if options.procs is None else Launch({"perNode": {}}, command.words, options.procs)


def _launch_program(command: ContainerCommand, world: World, report: Report) -> Launch | None:
    """Start one rank in each pod, as a program that reads RANK and WORLD_SIZE expects."""
    if _starts_mpi(command):
        report.add(command.location, "found mpirun, which each pod would run; import an MPIJob, or use torchrun")
        return None
    if report_references(command.words, command, report):
        return None
    if runs_file(command.words):
        return _launch_script_file(command, world, report)
    if world.procs.value not in _ONE_RANK:
        report.add(
            world.procs.location,
            f"found {world.procs.value}, but {quote(command.words[0])} runs once in each pod; start it with torchrun, "
            "or remove the field",
        )
        return None
    return _launch_direct(command, world, report)


def _launch_direct(command: ContainerCommand, world: World, report: Report) -> Launch | None:
    if world.nodes > 1 and not (world.sets_ranks or command.environment.has_rendezvous):
        if not world.sets_torchrun:
            report.add(
                command.location,
                f"found {quote(command.words[0])}, and neither torchrun nor the variables MASTER_ADDR and RANK: muster "
                f"can't tell that the {world.nodes} pods train together; use torchrun",
            )
            return None
        report.note(
            command.location,
            f"{quote(command.words[0])} runs once on each node, as before; in muster it is a rank with RANK, "
            "WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
        )
    return Launch({"direct": {}}, command.words, 1)


def _launch_script_file(command: ContainerCommand, world: World, report: Report) -> Launch | None:
    """Run a script file, which muster can't read: once on each node, or as a rank if the pods have one rank each."""
    procs = resolve_procs(world.procs, world.resources, report) if world.sets_torchrun else 1
    if procs is None:
        return None
    has_one_rank = procs == 1 or _has_one_device(world)
    if has_one_rank and (world.sets_ranks or not world.sets_torchrun):
        report.note(
            command.location,
            "muster can't see what the script starts; it runs as a rank, with RANK and WORLD_SIZE. If it runs torchrun "
            "or accelerate, set launcher: {perNode: {}} in the imported job",
        )
        return _launch_direct(command, world, report)
    report.note(
        command.location,
        "muster can't see what the script starts; it runs once on each node, and has to start the ranks with torchrun "
        "or accelerate. If it is itself a rank, set launcher: {direct: {}} and procsPerNode: 1 in the imported job",
    )
    return Launch({"perNode": {}}, command.words, procs)


def _has_one_device(world: World) -> bool:
    return has_devices(world.resources) and all(
        str(quantity) in ("0", "1") for name, quantity in world.resources.items() if is_device(name)
    )


def _starts_mpi(command: ContainerCommand) -> bool:
    script = find_script(command.words)
    return is_mpirun(command.words[0]) or (script is not None and _MPIRUN_IN_SCRIPT.search(script.script) is not None)
