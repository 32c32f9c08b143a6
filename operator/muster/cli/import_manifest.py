"""Run `muster import` on a manifest of Kubernetes: convert its training jobs. No request reaches a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import typer

from muster.api.document import Document
from muster.api.yaml.load import NotReadable, decode_documents
from muster.cli.errors import BadInput
from muster.cli.job_source import get_source_name, read_source
from muster.importers.kubernetes.manifests import import_manifests

_NOT_IMPORTED = 1
_SUFFIXES = (".yaml", ".yml", ".json")
_STDIN = "-"


@dataclass(frozen=True)
class ManifestOptions:
    """The options of `muster import` for a manifest."""

    file: str
    runtimes: Sequence[str]


def is_manifest(file: str) -> bool:
    """Whether the file is a manifest and no script."""
    return file == _STDIN or PurePath(file).suffix in _SUFFIXES


def import_manifest(options: ManifestOptions) -> int:
    """Print the file's jobs, or the problems; return the exit code. Raises `BadInput`."""
    runtimes = [document for file in options.runtimes for document in _read(file)]
    result = import_manifests(_read(options.file), runtimes)
    for notice in result.notices:
        typer.echo(f"notice: {notice}", err=True)
    for problem in result.problems:
        typer.echo(problem, err=True)
    source = get_source_name(options.file)
    if result.problems or not result.resources:
        # Import all jobs or none, because a file that lacks a job would look complete.
        typer.echo(f"{source}: " + ("nothing is imported" if result.problems else "it has no training job"), err=True)
        return _NOT_IMPORTED
    typer.echo("---\n".join(result.documents), nl=False)
    return 0


def _read(file: str) -> list[Document]:
    source = get_source_name(file)
    try:
        return decode_documents(read_source(file), source)
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror}") from None
    except NotReadable as error:
        raise BadInput(str(error)) from None
