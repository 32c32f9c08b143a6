"""A job from the file that the user named."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from muster.api.document import Document
from muster.api.load import MAX_TEXT_BYTES, NotReadable, load_bytes
from muster.api.problems import InvalidResource
from muster.api.spec import Job
from muster.api.validate import is_job, validate
from muster.cli.problem import BadInput

STDIN = "-"


def read_job(file: str) -> Job:
    """The one job in `file` ("-": standard input). Raises `BadInput` that says what is wrong, and where."""
    source = "standard input" if file == STDIN else file
    try:
        return validate(_only_job(load_bytes(_read(file), source), source))
    except (NotReadable, InvalidResource) as error:
        raise BadInput(str(error)) from None


def _only_job(documents: list[Document], source: str) -> Document:
    if len(documents) == 1:
        return documents[0]
    jobs = [document for document in documents if is_job(document)]
    if len(jobs) != 1:
        found = "no DistributedTrainingJob" if not jobs else f"{len(jobs)} DistributedTrainingJobs"
        raise BadInput(f"{source}: {found} in it; give a file with one")
    # a job may stand beside the ConfigMap that it uses on a cluster
    typer.echo(f"{source}: passed over {len(documents) - 1} resources of other kinds", err=True)
    return jobs[0]


def _read(file: str) -> bytes:
    try:
        # one byte more than allowed is enough to refuse a file, however long it is
        if file == STDIN:
            return sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
        with Path(file).open("rb") as stream:
            return stream.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}") from None
