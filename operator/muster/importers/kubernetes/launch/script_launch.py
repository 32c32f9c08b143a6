"""A shell script that starts torchrun runs once on each node, without the options that muster sets. Pure."""

from __future__ import annotations

import re

from muster.api.document import quote
from muster.importers.kubernetes.launch.container_command import ContainerCommand, report_references
from muster.importers.kubernetes.launch.torchrun import OPTION_IN_SCRIPT, STANDALONE_IN_SCRIPT
from muster.importers.kubernetes.launch.world import TorchrunWorld, World, read_options
from muster.importers.kubernetes.references import resolve_variable
from muster.importers.kubernetes.report import Report

_START = re.compile(r"(torchrun|torch\.distributed\.(?:run|launch))(?=\s)")
_UNSET_VARIABLES = re.compile(
    r"\$\{?(RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|GROUP_RANK|JOB_COMPLETION_INDEX|V[CK]_\w+)\b"
)

_POD_RANK = re.compile(r"\$(RANK\b|\{RANK\})")
_POD_COUNT = re.compile(r"\$(WORLD_SIZE\b|\{WORLD_SIZE\})")
_ACCELERATE_RANKS = re.compile(r"\baccelerate\s+launch\s.*--num_processes[=\s]+([1-9][0-9]{0,5})\b", re.DOTALL)


def launch_script(
    script: str, command: ContainerCommand, world: World, report: Report
) -> tuple[str, TorchrunWorld] | None:
    """Return the script without torchrun's options of the world, and what they say; None with a problem."""
    text, options = _remove_options(_replace_pod_ranks(script, command, world, report))
    own_options = {name: resolve_variable(value, command.environment.texts) for name, value in options.items()}
    known_options = {**command.environment.torchrun_options, **_read_accelerate_options(text, world), **own_options}
    result = read_options(known_options, world, command.location, report, lambda name: f"torchrun's --{name}")
    if result.procs is None or report_references((text,), command, report):
        return None
    kept_names = {entry.get("name") for entry in command.environment.kept}
    unset_names = [match[1] for match in _UNSET_VARIABLES.finditer(text) if match[1] not in kept_names]
    if unset_names:
        report.add(
            command.location,
            f"found {quote('$' + unset_names[0])} in the script, which isn't set before the launcher starts the ranks; "
            "use $NODE_RANK, $PET_NNODES, $MASTER_ADDR and $MASTER_PORT",
        )
        return None
    return text, result


def _replace_pod_ranks(script: str, command: ContainerCommand, world: World, report: Report) -> str:
    """Replace the pod's rank and the number of pods, which the old operator sets, by muster's variables.

    Within single quotes, another shell may read them in a rank.
    """
    has_one_rank = world.procs.value in ("auto", "1", 1)
    if not world.sets_ranks or not has_one_rank or "'" in script:
        return script
    text = _POD_RANK.sub("$NODE_RANK", _POD_COUNT.sub("$PET_NNODES", script))
    if text != script:
        report.note(
            command.location, "in the script, $RANK and $WORLD_SIZE of the pods become $NODE_RANK and $PET_NNODES"
        )
    return text


def _read_accelerate_options(script: str, world: World) -> dict[str, str]:
    """Return the number of ranks on each node, if accelerate's options have it."""
    match = _ACCELERATE_RANKS.search(script)
    if match is None or int(match[1]) % world.nodes:
        return {}
    return {"nproc-per-node": str(int(match[1]) // world.nodes)}


def _remove_options(script: str) -> tuple[str, dict[str, str]]:
    """Remove the options of each torchrun from its name to the end of its command."""
    options: dict[str, str] = {}
    parts: list[str] = []
    joined = script.replace("\\\n", " ")
    position = 0
    for start in _START.finditer(joined):
        end = _find_command_end(joined, start.end())
        arguments = joined[start.end() : end]
        for match in OPTION_IN_SCRIPT.finditer(arguments):
            options[match["name"].replace("_", "-")] = match["value"].strip("\"'")
        if STANDALONE_IN_SCRIPT.search(arguments):
            options["standalone"] = ""
        arguments = STANDALONE_IN_SCRIPT.sub("", OPTION_IN_SCRIPT.sub("", arguments))
        parts += [joined[position : start.end()], " ", arguments.lstrip(" ")]
        position = end
    # Without an option of the world, keep the script's own lines.
    return ("".join((*parts, joined[position:])), options) if options else (script, {})


def _find_command_end(text: str, start: int) -> int:
    match = re.compile(r"[\n;|]|&&").search(text, start)
    return len(text) if match is None else match.start()
