"""A job from the file that the user named."""

from __future__ import annotations

import sys
from pathlib import Path

from muster.api.load import NotReadable, load_bytes
from muster.api.problems import InvalidResource
from muster.api.spec import Job
from muster.api.validate import validate
from muster.cli.problem import BadInput

STDIN = "-"


def read_job(file: str) -> Job:
    """The one job in `file` ("-": standard input). Raises `BadInput` that says what is wrong, and where."""
    source = "standard input" if file == STDIN else file
    try:
        documents = load_bytes(_read(file), source)
        if len(documents) != 1:
            found = "no resource in it" if not documents else f"{len(documents)} resources in it"
            raise BadInput(f"{source}: {found}; give a file with one DistributedTrainingJob")
        return validate(documents[0])
    except (NotReadable, InvalidResource) as error:
        raise BadInput(str(error)) from None


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}") from None
