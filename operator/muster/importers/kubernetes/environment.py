"""Translate the environment variables of the ranks' container. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.api.document import JSON, FieldPath
from muster.api.json_fields import read_mappings
from muster.api.validation.rules.mpi.options import REMOTE_SHELL_VARIABLES
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

    def build(self) -> list[JSON]:
        """Return the value of spec.env."""
        return [dict(entry) for entry in self.kept]


def read_environment(
    container: Mapping[str, JSON], location: Location, report: Report, *, is_mpi: bool = False
) -> Environment:
    """Read the variables of a valid container."""
    entries = read_mappings(container.get("env"))
    last_positions = {str(entry.get("name")): index for index, entry in enumerate(entries)}
    kept: list[Mapping[str, JSON]] = []
    locations: list[Location] = []
    options: dict[str, str] = {}
    has_rendezvous = False
    for index, entry in enumerate(entries):
        name, origin = str(entry.get("name")), location.child("env", index)
        if last_positions[name] != index:
            report.note(origin, f"{name} is set again below, and the last value applies")
        elif name.startswith(_OWN_PREFIX):
            report.add(origin.child("name"), f"found {name}; muster reserves this prefix: choose another name")
        elif is_rendezvous_variable(name):
            has_rendezvous = True
            value = entry.get("value")
            if name.startswith(_TORCHRUN_PREFIX) and isinstance(value, str):
                options[name.removeprefix(_TORCHRUN_PREFIX).lower().replace("_", "-")] = value
            report.note(origin, f"muster sets {name} itself")
        elif is_mpi and name in _MPI_VARIABLES:
            report.note(origin, f"muster's agents start mpirun's daemons, and {name} has no effect")
        else:
            kept.append(entry)
            locations.append(origin)
    return Environment(
        kept=tuple(kept),
        locations=tuple(locations),
        texts=_resolve_texts(entries),
        torchrun_options=options,
        has_rendezvous=has_rendezvous,
        has_sources=bool(container.get("envFrom")),
    )


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
