"""The results of `muster validate`, and their formats. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.api.plurals import pluralize
from muster.cli.output import TextFormat, format_data

_TITLES = ("FILE", "NAME", "BACKEND", "NODES", "PROCSPERNODE", "RESULT")


@dataclass(frozen=True)
class JobSummary:
    """A valid job."""

    name: str
    backend: str
    nodes: int
    procs_per_node: int | str


@dataclass(frozen=True)
class ValidationResult:
    """The result for a document, or for a file that can't be read. `job` is None unless the job is valid.

    `omitted_count` is the number of problems that are not listed. `text` are the lines for standard error.
    """

    source: str
    job: JobSummary | None = None
    problems: tuple[FieldProblem, ...] = ()
    warnings: tuple[str, ...] = ()
    omitted_count: int = 0
    is_skipped: bool = False
    text: str = ""


def format_results(results: Sequence[ValidationResult], output: TextFormat) -> str:
    """Format the results: as a list in JSON or YAML, or as a table with a line for each."""
    checked = [result for result in results if not result.is_skipped]
    if output != "wide":
        return format_data({"results": [_build_data(result) for result in checked]}, output)
    rows = [_TITLES, *map(_build_row, checked)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(_TITLES))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _build_data(result: ValidationResult) -> JSON:
    job: dict[str, JSON] = {} if result.job is None else {"name": result.job.name}
    omitted: dict[str, JSON] = {"problemsLeftOut": result.omitted_count} if result.omitted_count else {}
    return {
        "file": result.source,
        **job,
        "valid": result.job is not None,
        "problems": [_build_problem(problem) for problem in result.problems],
        **omitted,
        "warnings": list(result.warnings),
    }


def _build_problem(problem: FieldProblem) -> JSON:
    line: dict[str, JSON] = {} if problem.line is None else {"line": problem.line}
    field: dict[str, JSON] = {"field": problem.path} if problem.path else {}
    return {**line, **field, "message": problem.message}


def _build_row(result: ValidationResult) -> tuple[str, ...]:
    job = result.job
    if job is None:
        return (result.source, "-", "-", "-", "-", pluralize(len(result.problems), "problem"))
    text = f"valid, {pluralize(len(result.warnings), 'warning')}" if result.warnings else "valid"
    return (result.source, job.name, job.backend, str(job.nodes), str(job.procs_per_node), text)
