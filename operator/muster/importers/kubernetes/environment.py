"""Translate the environment variables of the ranks' container. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from muster.api.document import JSON, FieldPath
from muster.api.json_fields import read_mappings
from muster.api.validation.rules.mpi.options import REMOTE_SHELL_VARIABLES
from muster.importers.kubernetes.node_index import (
    NO_INDEX,
    NodeIndex,
    get_field_path,
    is_old_field,
    list_used_variables,
    make_index_variable,
)
from muster.importers.kubernetes.references import expand, list_references
from muster.importers.kubernetes.report import Location, Report
from muster_worker.contract.rendezvous import is_rendezvous_variable

_OWN_PREFIX = "MUSTER_"
_TORCHRUN_PREFIX = "PET_"
_MPI_VARIABLES = (
    *REMOTE_SHELL_VARIABLES,
    *("OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_keep_fqdn_hostnames", "OMPI_ALLOW_RUN_AS_ROOT"),
    *("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_orte_set_default_slots", "I_MPI_PERHOST"),
)


@dataclass(frozen=True)
class Environment:
    """The variables of a container: what a job keeps, with the location of each, and all others."""

    kept: tuple[Mapping[str, JSON], ...]
    locations: tuple[Location, ...]
    texts: Mapping[str, str | None]
    """The value of each variable; None if the cluster knows it, as with valueFrom."""

    torchrun_options: Mapping[str, str]
    """The values of torchrun's options in variables such as PET_NPROC_PER_NODE, by the option's name."""

    has_rendezvous: bool
    """Whether the container gets a rank or an address of the rendezvous."""

    has_sources: bool
    """Whether the container gets variables whose names only the cluster knows (envFrom)."""

    added_names: tuple[str, ...] = ()
    """The names of the variables that the controller adds, which are the last ones."""

    def drop_unused(self, command: Sequence[str]) -> Environment:
        """Return the environment without variables of the controller that the command doesn't mention."""
        text = " ".join(command)
        indices = [
            index
            for index, entry in enumerate(self.kept)
            if entry.get("name") not in self.added_names or str(entry.get("name")) in text
        ]
        return replace(
            self,
            kept=tuple(self.kept[index] for index in indices),
            locations=tuple(self.locations[index] for index in indices),
        )

    def build(self) -> list[JSON]:
        """Return the value of spec.env."""
        return [dict(entry) for entry in self.kept]


def read_environment(
    container: Mapping[str, JSON],
    location: Location,
    report: Report,
    *,
    is_mpi: bool = False,
    index: NodeIndex = NO_INDEX,
) -> Environment:
    """Read the variables of a valid container."""
    entries = read_mappings(container.get("env"))
    texts = _resolve_texts(entries)
    last_positions = {str(entry.get("name")): position for position, entry in enumerate(entries)}
    kept: list[Mapping[str, JSON]] = []
    locations: list[Location] = []
    options: dict[str, str] = {}
    for position, entry in enumerate(entries):
        name, origin = str(entry.get("name")), location.child("env", position)
        if last_positions[name] != position:
            report.note(origin, f"{name} is set again below, and the last value applies")
        elif is_rendezvous_variable(name) and not name.startswith(_OWN_PREFIX):
            options.update(_read_torchrun_option(name, entry))
            report.note(origin, f"muster sets {name} itself")
        elif is_mpi and name in _MPI_VARIABLES:
            report.note(origin, f"muster's agents start mpirun's daemons, and {name} has no effect")
        else:
            kept.append(_translate(entry, origin, index, report))
            locations.append(origin)
    added_names = tuple(name for name in list_used_variables(index, container) if name not in texts)
    return Environment(
        kept=(*kept, *map(make_index_variable, added_names)),
        locations=(*locations, *[location.child("command")] * len(added_names)),
        texts={**texts, **dict.fromkeys(added_names)},
        torchrun_options=options,
        has_rendezvous=any(is_rendezvous_variable(name) for name in texts),
        has_sources=bool(container.get("envFrom")),
        added_names=added_names,
    )


def _read_torchrun_option(name: str, entry: Mapping[str, JSON]) -> dict[str, str]:
    value = entry.get("value")
    if not name.startswith(_TORCHRUN_PREFIX) or not isinstance(value, str):
        return {}
    return {name.removeprefix(_TORCHRUN_PREFIX).lower().replace("_", "-"): value}


def _translate(entry: Mapping[str, JSON], origin: Location, index: NodeIndex, report: Report) -> Mapping[str, JSON]:
    """Return the variable as the job has it."""
    name, value, path = str(entry.get("name")), entry.get("value"), get_field_path(entry)
    if name.startswith(_OWN_PREFIX):
        report.add(origin.child("name"), f"found {name}; muster reserves this prefix: choose another name")
    references = list_references(value) if isinstance(value, str) else []
    for reference in references:
        if is_rendezvous_variable(reference):
            report.add(
                origin.child("value"),
                f"found $({reference}), which muster sets only for the ranks; read {reference} in the script",
            )
    if path in index.fields:
        return make_index_variable(name)
    if is_old_field(path):
        report.add(
            origin.child("valueFrom"),
            f"found {path}, which muster's pods don't have; read RANK or NODE_RANK in the script",
        )
    return entry


def _resolve_texts(entries: Sequence[Mapping[str, JSON]]) -> dict[str, str | None]:
    """Return each variable's value, with the references to variables above it."""
    texts: dict[str, str | None] = {}
    for entry in entries:
        value = entry.get("value")
        text = expand(value, texts) if isinstance(value, str) else ""
        is_known = entry.get("valueFrom") is None and not any(name in texts for name in list_references(text))
        texts[str(entry.get("name"))] = text if is_known else None
    return texts


def list_env_paths(locations: Sequence[Location]) -> list[tuple[FieldPath, Location]]:
    """Return the path of each entry of spec.env, and its origin."""
    return [(("spec", "env", index), location) for index, location in enumerate(locations)]
