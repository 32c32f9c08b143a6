"""`muster validate`: what is wrong with files of jobs, all of it, before anything is run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from muster.api.document import Document
from muster.api.load import MAX_TEXT_BYTES, NotReadable, load_bytes
from muster.api.problems import InvalidResource
from muster.api.validate import is_job
from muster.api.validate import validate as validate_document

_STDIN = "-"
_INVALID = 1
_UNREADABLE = 2

Files = Annotated[
    list[str],
    typer.Option("--file", "-f", metavar="FILE", help="A file of jobs; - reads standard input. May be repeated."),
]


def validate(file: Files) -> None:
    """Check files of jobs. Exit code 1: a job is not valid, 2: a file can't be read.

    Each problem is a line on standard error: `job.yaml:12: spec.nodes: found 0; allowed are 1 to 10000`. Resources of
    other kinds are named and passed over: a file may hold a job beside its ConfigMap.
    """
    raise typer.Exit(max([check_file(name) for name in file], default=0))


def check_file(name: str) -> int:
    """Check one file, say what was found, and give the exit code."""
    source = "standard input" if name == _STDIN else name
    try:
        documents = load_bytes(_read(name), source)
    except OSError as error:
        typer.echo(f"{source}: {error.strerror}", err=True)
        return _UNREADABLE
    except NotReadable as error:
        typer.echo(str(error), err=True)
        return _UNREADABLE
    if not any(is_job(document) for document in documents) and len(documents) != 1:
        typer.echo(f"{source}: no DistributedTrainingJob in it", err=True)
        return _INVALID
    return max(_check(document, alone=len(documents) == 1) for document in documents)


def _check(document: Document, *, alone: bool) -> int:
    if not alone and not is_job(document):
        line = document.line(())
        place = document.source if line is None else f"{document.source}:{line}"
        typer.echo(f"{place}: not a DistributedTrainingJob; passed over", err=True)
        return 0
    try:
        job = validate_document(document)
    except InvalidResource as error:
        typer.echo(str(error), err=True)
        return _INVALID
    typer.echo(f"{document.source}: {job.metadata.name} is valid")
    return 0


def _read(name: str) -> bytes:
    # one byte more than allowed is enough to refuse a file, however long it is
    if name == _STDIN:
        return sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    with Path(name).open("rb") as file:
        return file.read(MAX_TEXT_BYTES + 1)
