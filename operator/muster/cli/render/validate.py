"""Run `muster validate`: report all problems in files of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from muster.api.document import Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.validation.validate import is_job
from muster.api.yaml.load import NotReadable, decode_documents
from muster.cli.backends import get_commands
from muster.cli.config_file import check_with_config
from muster.cli.errors import BadInput
from muster.cli.job_file import expand_document, read_templates
from muster.cli.job_source import get_source_name, read_source
from muster.cli.render.validation_result import JobSummary, ValidationResult, format_results
from muster.render.training_template.expand import validate_expanded
from muster.render.training_template.template import TrainingTemplate, is_template, read_template

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig
    from muster.cli.output import TextFormat

_INVALID = 1
_UNREADABLE = 2


def check_files(
    names: Sequence[str],
    config: OperatorConfig | None = None,
    output: TextFormat | None = None,
    template_files: Sequence[str] = (),
) -> int:
    """Check files, report problems, and return the exit code: 1 for invalid jobs, 2 if a file can't be read.

    Raises `BadInput` for template files that can't be used.
    """
    templates = _read_template_files(template_files)
    results: list[ValidationResult] = []

    def report(result: ValidationResult) -> None:
        _report(result, shows_valid=output is None)
        results.append(result)

    code = max([check_file(name, config, report, templates) for name in names], default=0)
    if output is not None:
        typer.echo(format_results(results, output), nl=False)
    return code


def check_file(
    name: str,
    config: OperatorConfig | None = None,
    report: Callable[[ValidationResult], None] | None = None,
    templates: Sequence[TrainingTemplate] = (),
) -> int:
    """Check one file, pass each job's result to `report` (None: print it), and return the exit code."""
    codes = []
    for result, code in _check_file(name, templates, config):
        (report or _report)(result)
        codes.append(code)
    return max(codes)


def _read_template_files(files: Sequence[str]) -> list[TrainingTemplate]:
    try:
        return read_templates((), files)
    except (NotReadable, InvalidResource) as error:
        raise BadInput(str(error)) from None


def _check_file(
    name: str, templates: Sequence[TrainingTemplate], config: OperatorConfig | None
) -> Iterator[tuple[ValidationResult, int]]:
    source = get_source_name(name)
    try:
        documents = decode_documents(read_source(name), source)
    except OSError as error:
        yield _make_failure(source, FieldProblem("", error.strerror or str(error))), _UNREADABLE
        return
    except NotReadable as error:
        yield _make_failure(source, FieldProblem("", error.message, error.line)), _UNREADABLE
        return
    own_templates: list[TrainingTemplate] = []
    for document in filter(is_template, documents):
        try:
            own_templates.append(read_template(document))
            note = f"{document.source}: {own_templates[-1]} is valid"
            yield ValidationResult(document.source, is_skipped=True, text=note), 0
        except InvalidResource as error:
            yield _make_invalid(document, error), _INVALID
            # Jobs of this file may name the invalid template.
            return
    others = [document for document in documents if not is_template(document)]
    if not any(is_job(document) for document in others) and len(documents) != 1:
        if not own_templates:
            yield _make_failure(source, FieldProblem("", "found no DistributedTrainingJob")), _INVALID
        return
    for document in others:
        yield _check(document, (*own_templates, *templates), config, is_only_document=len(documents) == 1)


def _check(
    document: Document,
    templates: Sequence[TrainingTemplate],
    config: OperatorConfig | None,
    *,
    is_only_document: bool,
) -> tuple[ValidationResult, int]:
    if not is_only_document and not is_job(document):
        note = FieldProblem("", "not a DistributedTrainingJob; skipped", document.find_line(()))
        return ValidationResult(document.source, is_skipped=True, text=note.format_with_source(document.source)), 0
    try:
        expanded = expand_document(document, templates)
        job = validate_expanded(expanded)
        check_with_config(job, document, config)
        get_commands(job).check(job, document, config)
    except InvalidResource as error:
        return _make_invalid(document, error), _INVALID
    commands = get_commands(job)
    problems = [f"a cluster can't run this job yet: {problem}" for problem in commands.find_problems(job, config)]
    summary = JobSummary(job.metadata.name, job.spec.backend, job.spec.nodes, job.spec.procs_per_node)
    warnings = (*problems, *commands.make_warnings(job))
    return ValidationResult(document.source, job=summary, warnings=warnings), 0


def _make_invalid(document: Document, error: InvalidResource) -> ValidationResult:
    return ValidationResult(
        document.source, problems=error.problems, omitted_count=error.omitted_count, text=str(error)
    )


def _make_failure(source: str, problem: FieldProblem) -> ValidationResult:
    return ValidationResult(source, problems=(problem,), text=problem.format_with_source(source))


def _report(result: ValidationResult, *, shows_valid: bool = True) -> None:
    """Print problems on standard error, and which job is valid on standard output."""
    if result.text:
        typer.echo(result.text, err=True)
    if result.job is not None and shows_valid:
        typer.echo(f"{result.source}: {result.job.name} is valid")
    for warning in result.warnings:
        typer.echo(f"{result.source}: {warning}", err=True)
