"""Read a job from a file of the user."""

from __future__ import annotations

import typer

from muster.api.document import Document
from muster.api.field_problems import InvalidResource
from muster.api.plurals import pluralize
from muster.api.spec.job import Job
from muster.api.validation.validate import is_job, validate
from muster.api.yaml.load import NotReadable, decode_documents
from muster.cli.errors import BadInput
from muster.cli.job_source import get_source_name, read_source


def read_job(file: str) -> Job:
    """Read the only job in `file` ("-" is standard input). Raises `BadInput` with the problem and its line."""
    return read_job_document(file)[1]


def read_job_document(file: str) -> tuple[Document, Job]:
    """Read the only job in `file`, as the user wrote it and with its defaults. Raises `BadInput`."""
    source = get_source_name(file)
    try:
        document = _find_only_job(decode_documents(read_source(file), source), source)
        return document, validate(document)
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror}") from None
    except (NotReadable, InvalidResource) as error:
        raise BadInput(str(error)) from None


def _find_only_job(documents: list[Document], source: str) -> Document:
    if len(documents) == 1:
        return documents[0]
    jobs = [document for document in documents if is_job(document)]
    if len(jobs) != 1:
        result = "no DistributedTrainingJob" if not jobs else f"{len(jobs)} DistributedTrainingJobs"
        raise BadInput(f"{source}: found {result}; use a file with one")
    # A file may contain a job and the ConfigMap that it uses on a cluster.
    typer.echo(f"{source}: skipped {pluralize(len(documents) - 1, 'resource')} of another kind", err=True)
    return jobs[0]
