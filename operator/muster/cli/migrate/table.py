"""The table of `muster migrate`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.plurals import pluralize
from muster.importers.kubernetes.manifests import ManifestResult

_HEADER = ("NAMESPACE", "KIND", "NAME", "BECOMES")


@dataclass(frozen=True)
class MigratedJob:
    """A job of another operator, and the result of its import."""

    namespace: str
    kind: str
    name: str
    result: ManifestResult


def format_table(jobs: Sequence[MigratedJob]) -> str:
    """Return a line for each job, and the problems below the jobs that muster can't import."""
    rows = [(job.namespace, job.kind, job.name, _describe(job.result)) for job in jobs]
    widths = [max(len(row[column]) for row in (_HEADER, *rows)) for column in range(len(_HEADER))]
    lines = [_align(_HEADER, widths)]
    for job, row in zip(jobs, rows, strict=True):
        lines.append(_align(row, widths))
        lines += [f"  {problem}" for problem in job.result.problems]
    return "".join(f"{line}\n" for line in lines)


def _align(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _describe(result: ManifestResult) -> str:
    if result.problems:
        return f"not imported: {pluralize(len(result.problems), 'problem')}"
    return ", ".join(_describe_job(resource) for resource in result.resources)


def _describe_job(resource: JSON) -> str:
    spec = read_mapping(read_mapping(resource).get("spec"))
    nodes, procs = spec.get("nodes", 1), spec.get("procsPerNode", "Auto")
    launcher = next(iter(read_mapping(spec.get("launcher"))), "")
    return f"{nodes} x {procs} ranks, {launcher}"
