"""Run `muster validate`: report all problems in files of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from muster.api.document import Document
from muster.api.field_problems import InvalidResource
from muster.api.validation.validate import is_job
from muster.api.validation.validate import validate as validate_document
from muster.api.yaml.load import NotReadable, decode_documents
from muster.cli.backends import get_commands
from muster.cli.config_file import check_with_config
from muster.cli.job_source import get_source_name, read_source

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig

_INVALID = 1
_UNREADABLE = 2


def check_files(names: Sequence[str], config: OperatorConfig | None = None) -> int:
    """Check files, report problems, and return the exit code: 1 for invalid jobs, 2 if a file can't be read."""
    return max([check_file(name, config) for name in names], default=0)


def check_file(name: str, config: OperatorConfig | None = None) -> int:
    """Check one file, report its problems, and return the exit code."""
    source = get_source_name(name)
    try:
        documents = decode_documents(read_source(name), source)
    except OSError as error:
        typer.echo(f"{source}: {error.strerror}", err=True)
        return _UNREADABLE
    except NotReadable as error:
        typer.echo(str(error), err=True)
        return _UNREADABLE
    if not any(is_job(document) for document in documents) and len(documents) != 1:
        typer.echo(f"{source}: found no DistributedTrainingJob", err=True)
        return _INVALID
    return max(_check(document, config, is_only_document=len(documents) == 1) for document in documents)


def _check(document: Document, config: OperatorConfig | None, *, is_only_document: bool) -> int:
    if not is_only_document and not is_job(document):
        line = document.find_line(())
        location = document.source if line is None else f"{document.source}:{line}"
        typer.echo(f"{location}: not a DistributedTrainingJob; skipped", err=True)
        return 0
    try:
        job = validate_document(document)
        check_with_config(job, document, config)
        get_commands(job).check(job, document, config)
    except InvalidResource as error:
        typer.echo(str(error), err=True)
        return _INVALID
    typer.echo(f"{document.source}: {job.metadata.name} is valid")
    for problem in get_commands(job).find_problems(job, config):
        typer.echo(f"{document.source}: a cluster can't run this job yet: {problem}", err=True)
    for note in get_commands(job).make_warnings(job):
        typer.echo(f"{document.source}: {note}", err=True)
    return 0
