"""Compare the options of torchrun with the manifest's world. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from muster.api.document import JSON, quote
from muster.importers.kubernetes.launch.procs import Procs, resolve_procs
from muster.importers.kubernetes.report import Location, Report

_RANGE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")
_NUMBER = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class World:
    """The ranks of a manifest: its nodes, and the number of ranks on each that torchrun starts without an option.

    `nodes_location` is the field with the number of nodes. `sets_ranks` is whether the platform sets RANK, WORLD_SIZE
    and MASTER_ADDR in each pod, for one rank in each. `sets_torchrun` is whether it sets the variables PET_*.
    `has_address` is whether the pods get the address of the master in another way.
    """

    nodes: int
    nodes_location: Location
    procs: Procs
    resources: Mapping[str, JSON]
    sets_ranks: bool = False
    sets_torchrun: bool = False
    has_address: bool = False


@dataclass(frozen=True)
class TorchrunWorld:
    """What torchrun's options say: ranks on each node, restarts (None: unset) and the range of nodes."""

    procs: int | str | None
    procs_location: Location
    max_restarts: int | None
    nodes_range: tuple[int, int] | None


def is_reference(text: str) -> bool:
    """Whether a value is a variable, which muster sets itself."""
    return re.fullmatch(r"\$(\w+|\{\w+\}|\(\w+\))(:\$(\w+|\{\w+\}|\(\w+\)))?", text) is not None


def read_options(
    options: Mapping[str, str], world: World, location: Location, report: Report, describe: Callable[[str], str]
) -> TorchrunWorld:
    """Read torchrun's options. `describe` formats an option's name for messages."""
    for name, text in options.items():
        check = _CHECKS.get(name)
        problem = None if check is None else check(text, world)
        if problem is not None:
            report.add(location, f"found {describe(name)} {quote(text)}; {problem}")
        elif name in _REPLACED:
            report.note(location, f"{describe(name)}: muster sets {_REPLACED[name]} itself")
    _check_missing_nodes(options, world, location, report)
    restarts = options.get("max-restarts", "")
    return TorchrunWorld(
        procs=_read_procs(options, world, location, report),
        procs_location=location if "nproc-per-node" in options else world.procs.location,
        max_restarts=int(restarts) if _NUMBER.fullmatch(restarts) else None,
        nodes_range=_read_range(options.get("nnodes", "")),
    )


def _check_missing_nodes(options: Mapping[str, str], world: World, location: Location, report: Report) -> None:
    """Check that torchrun knows the other nodes: without --nnodes, it trains on each node alone."""
    if world.nodes == 1 or world.sets_torchrun or "nnodes" in options:
        return
    if world.has_address or any(name in options for name in ("master-addr", "rdzv-endpoint")):
        report.note(
            location, f"torchrun without --nnodes trains on each node alone; the imported job has {world.nodes} nodes"
        )
    else:
        report.add(
            location,
            f"found torchrun without --nnodes on {world.nodes} nodes, which trains on each node alone; add --nnodes",
        )


def _read_procs(options: Mapping[str, str], world: World, location: Location, report: Report) -> int | str | None:
    text = options.get("nproc-per-node")
    if text is None:
        return resolve_procs(world.procs, world.resources, report)
    if is_reference(text):
        # Only the manifest's own field can be meant, if it sets torchrun's variables.
        if world.sets_torchrun:
            return resolve_procs(world.procs, world.resources, report)
        report.add(location, f"found nproc_per_node {quote(text)}, whose value muster doesn't know; write a number")
        return None
    return resolve_procs(replace(world.procs, value=text, location=location), world.resources, report)


def _read_range(text: str) -> tuple[int, int] | None:
    match = _RANGE.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[2]))


def _check_nodes(text: str, world: World) -> str | None:
    match = _RANGE.fullmatch(text)
    if is_reference(text) or text == str(world.nodes):
        return None
    if match is not None and int(match[1]) <= world.nodes <= int(match[2]):
        return None
    return f"the manifest has {world.nodes} nodes; change one of them"


def _check_node_rank(text: str, world: World) -> str | None:
    if world.nodes == 1 and text == "0":
        return None
    if is_reference(text):
        return None
    return "each pod would have the same rank; remove the option, because muster sets it"


def _check_restarts(text: str, _: World) -> str | None:
    return None if _NUMBER.fullmatch(text) else "a whole number is expected"


def _check_standalone(_: str, world: World) -> str | None:
    return None if world.nodes == 1 else f"with it, each of the {world.nodes} nodes trains alone; remove the option"


def _refuse(remedy: str) -> Callable[[str, World], str]:
    return lambda _, __: remedy


_CHECKS: Mapping[str, Callable[[str, World], str | None]] = {
    "nnodes": _check_nodes,
    "node-rank": _check_node_rank,
    "max-restarts": _check_restarts,
    "standalone": _check_standalone,
    "run-path": _refuse("a job can't run a path this way; run python with the script"),
    "virtual-local-rank": _refuse("every rank would see LOCAL_RANK 0, which a job can't have; remove the option"),
}

_REPLACED = {
    "node-rank": "the rank of each node",
    "master-addr": "the master's address",
    "master-port": "the master's port",
    "rdzv-backend": "the rendezvous",
    "rdzv-endpoint": "the rendezvous",
    "rdzv-id": "the rendezvous",
    "rdzv-conf": "the rendezvous, whose time limit is startupTimeoutSeconds,",
    "local-addr": "each node's address",
    "standalone": "the rendezvous",
}
"""The options that muster replaces, and what they set."""
