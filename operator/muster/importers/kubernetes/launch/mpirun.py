"""Translate an mpirun command line to spec.launcher.mpi, without the hosts and the number of ranks. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.document import JSON, quote
from muster.api.validation.rules.mpi.command_line import Option, parse_options
from muster.api.validation.rules.mpi.options import MCA_PARAMETERS
from muster.importers.kubernetes.launch.launch import Launch
from muster.importers.kubernetes.launch.shell_script import Word
from muster.importers.kubernetes.launch.world import is_reference
from muster.importers.kubernetes.report import Location, Report

_RANK_COUNTS = ("n", "np", "c")
_NODE_COUNTS = ("npernode", "N", "ppn", "perhost")
_HOSTS = (*("hostfile", "machinefile", "default-hostfile", "f", "H", "host", "hosts", "add-host", "add-hostfile"),)
_OPERATOR_HOST_FILES = ("/etc/mpi/hostfile", "/etc/volcano/mpiworker.host", "$OMPI_MCA_orte_default_hostfile")
_NODE_BY_NODE = re.compile(r"(slot|core|hwthread)(:.*)?", re.IGNORECASE)
_PER_NODE = re.compile(r"ppr:([0-9]+):node(:.*)?", re.IGNORECASE)
_REMOTE = ("launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rmk", "plm_rsh_args", "plm_rsh_no_tree_spawn")


@dataclass(frozen=True)
class MpiWorld:
    """The nodes of an MPI job and its slots on each."""

    nodes: int
    slots: int
    implementation: str | None


def find_mpi_launch(words: Sequence[Word], world: MpiWorld, location: Location, report: Report) -> Launch | None:
    """Return the launch of an mpirun command; None with a problem. `words` begin with mpirun."""
    texts = [word.text for word in words]
    kept: list[Word] = []
    end = 1
    has_problem = False
    for option in parse_options(texts[1:]):
        end = 1 + option.index + 1 + (len(option.values) if option.value_index != option.index else 0)
        problem = _check_option(option, world)
        if problem is not None:
            report.add(location, f"found {quote(' '.join(texts[1 + option.index : end]))}; {problem}")
            has_problem = True
        elif _is_replaced(option):
            report.note(location, f"{' '.join(texts[1 + option.index : end])}: muster sets this for mpirun itself")
        else:
            kept += words[1 + option.index : end]
    program = words[end:]
    if has_problem or not _check_program(program, kept, location, report):
        return None
    args: list[JSON] = [word.text for word in kept]
    fields: dict[str, JSON] = {"implementation": world.implementation} if world.implementation else {}
    program_texts = tuple(word.text for word in program)
    if "/" in texts[0]:  # muster's own mpirun is the first one on the PATH
        report.note(location, f"muster runs {texts[0]} with these options; its ranks get no MASTER_ADDR of muster")
        return Launch({"mpi": fields}, (texts[0], *(word.text for word in kept), *program_texts), world.slots)
    launcher: dict[str, JSON] = {"mpi": {**fields, **({"args": args} if args else {})}}
    return Launch(launcher, program_texts, world.slots)


def _check_program(program: Sequence[Word], kept: Sequence[Word], location: Location, report: Report) -> bool:
    if not program:
        report.add(location, "found mpirun without a program; add the program that the ranks run")
        return False
    if program[0].text.startswith("-"):
        report.add(location, f"found mpirun's option {program[0].text}, which muster doesn't know; remove it")
        return False
    if any(word.text == ":" for word in program):
        report.add(location, 'found ":" and several programs; all ranks of a job run the same command')
        return False
    expanding_words = [word.text for word in (*kept, *program) if word.expands]
    if expanding_words:
        report.add(
            location,
            f"found {quote(expanding_words[0])}, which a shell would replace; write its value, or run a shell in each "
            "rank: mpirun sh -c '...'",
        )
        return False
    return True


def _check_option(option: Option, world: MpiWorld) -> str | None:
    value = option.values[0] if option.values else ""
    ranks = world.nodes * world.slots
    if option.name in _RANK_COUNTS:
        return (
            None
            if value == str(ranks)
            else f"the manifest has {world.nodes} nodes x {world.slots} slots; change one of them"
        )
    if option.name in _NODE_COUNTS:
        return None if value == str(world.slots) else f"the manifest has {world.slots} slots on each node; change one"
    if option.name in _HOSTS:
        is_right = value in _OPERATOR_HOST_FILES or is_reference(value)
        return None if is_right else "muster's pods have other names, and muster gives mpirun the hosts; remove it"
    if option.name in ("map-by", "rank-by"):
        return _check_order(value, world)
    if option.name == "bynode":
        return "muster numbers the ranks node by node; remove it"
    return None


def _check_order(value: str, world: MpiWorld) -> str | None:
    match = _PER_NODE.fullmatch(value)
    if _NODE_BY_NODE.fullmatch(value) or (match is not None and match[1] == str(world.slots)):
        return None
    return f"muster numbers the ranks node by node, {world.slots} on each; remove it"


def _is_replaced(option: Option) -> bool:
    names = (*_RANK_COUNTS, *_NODE_COUNTS, *_HOSTS, *_REMOTE, "map-by", "rank-by", "byslot", "allow-run-as-root")
    is_remote_parameter = (
        option.name in ("mca", "gmca", "prtemca")
        and option.values[:1]
        and (option.values[0] in (*MCA_PARAMETERS, *_REMOTE))
    )
    return option.name in names or bool(is_remote_parameter)
