"""Read a job from a file of the user, and its template from the same file or another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import typer

from muster.api.document import Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.plurals import pluralize
from muster.api.spec.job import Job
from muster.api.spec.template_ref import TemplateRef
from muster.api.validation.validate import is_job
from muster.api.yaml.load import NotReadable, decode_documents
from muster.cli.errors import BadInput
from muster.cli.job_source import get_source_name, read_source
from muster.render.training_template.expand import (
    REFERENCE,
    ExpandedJob,
    expand,
    find_reference,
    read_reference,
    validate_expanded,
)
from muster.render.training_template.template import TrainingTemplate, is_template, read_template


@dataclass(frozen=True)
class JobFile:
    """A job's document, which may be invalid, and the templates of the user's files."""

    document: Document
    templates: tuple[TrainingTemplate, ...] = ()


def read_job(file: str, template_files: Sequence[str] = ()) -> Job:
    """Read the only job in `file` ("-" is standard input), with its template's values.

    The template is in `file` or in one of `template_files`. Raises `BadInput` with the problem and its line.
    """
    job, _ = read_expanded_job(file, template_files)
    return job


def read_expanded_job(file: str, template_files: Sequence[str] = ()) -> tuple[Job, ExpandedJob]:
    """As `read_job`, and return also which values come from the template. Raises `BadInput`."""
    return expand_job(read_job_file(file, template_files))


def read_job_file(file: str, template_files: Sequence[str] = ()) -> JobFile:
    """Read the only job in `file`, and the templates that it may name. Raises `BadInput`."""
    try:
        documents = _read_documents(file)
        templates = read_templates(documents, template_files)
        document = _find_only_job(documents, get_source_name(file))
        if template_files and find_reference(document) is None:
            raise BadInput(f"{document.source}: the job has no spec.{REFERENCE}; remove --template")
        return JobFile(document, tuple(templates))
    except (NotReadable, InvalidResource) as error:
        raise BadInput(str(error)) from None


def expand_job(job_file: JobFile) -> tuple[Job, ExpandedJob]:
    """Return the valid job with its template's values, and which these are. Raises `BadInput`."""
    try:
        expanded = expand_document(job_file.document, job_file.templates)
        return validate_expanded(expanded), expanded
    except InvalidResource as error:
        raise BadInput(str(error)) from None


def read_templates(documents: Iterable[Document], files: Sequence[str]) -> list[TrainingTemplate]:
    """Return the templates among the documents and in the files.

    Raises `InvalidResource`, `NotReadable` and `BadInput`.
    """
    templates = [read_template(document) for document in documents if is_template(document)]
    for file in files:
        found = [read_template(document) for document in _read_documents(file) if is_template(document)]
        if not found:
            raise BadInput(f"{file}: found no TrainingTemplate and no ClusterTrainingTemplate")
        templates += found
    return templates


def expand_document(document: Document, templates: Iterable[TrainingTemplate]) -> ExpandedJob:
    """Return the job with the values of the template that it names. Raises `InvalidResource` if there is none."""
    reference = find_reference(document)
    if reference is None:
        return ExpandedJob(document)
    wanted = read_reference(reference)
    found = find_templates(wanted, templates)
    if len(found) == 1:
        return expand(document, found[0])
    missing = "is in no file; name its file with --template (`kubectl get -o yaml` writes one)"
    result = "is there twice; remove one" if found else missing
    line = document.find_line(("spec", REFERENCE))
    problem = FieldProblem(f"spec.{REFERENCE}", f"{wanted.kind} {wanted.name} {result}", line)
    raise InvalidResource((problem,), document.source)


def find_templates(wanted: TemplateRef, templates: Iterable[TrainingTemplate]) -> list[TrainingTemplate]:
    """Return the templates of this kind and name."""
    return [template for template in templates if (template.kind, template.name) == (wanted.kind, wanted.name)]


def _read_documents(file: str) -> list[Document]:
    source = get_source_name(file)
    try:
        return decode_documents(read_source(file), source)
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror}") from None


def _find_only_job(documents: list[Document], source: str) -> Document:
    others = [document for document in documents if not is_template(document)]
    if len(others) == 1:
        return others[0]
    jobs = [document for document in others if is_job(document)]
    if len(jobs) != 1:
        result = "no DistributedTrainingJob" if not jobs else f"{len(jobs)} DistributedTrainingJobs"
        raise BadInput(f"{source}: found {result}; use a file with one")
    # A file may contain a job and the ConfigMap that it uses on a cluster.
    typer.echo(f"{source}: skipped {pluralize(len(others) - 1, 'resource')} of another kind", err=True)
    return jobs[0]
