"""The job that the user names on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from muster.api.names import MAX_NAME_CHARS, MAX_NAMESPACE_CHARS, NAME_MESSAGE, NAME_PATTERN, NAMESPACE_PATTERN
from muster.cli.errors import BadInput


@dataclass(frozen=True)
class JobReference:
    """The name and namespace of a job. If `namespace` is None, use the namespace of the kubeconfig's context."""

    name: str
    namespace: str | None = None


def check_names(reference: JobReference) -> None:
    """Raise `BadInput` for invalid names, for which the API server would only report an unknown path."""
    if len(reference.name) > MAX_NAME_CHARS or not re.fullmatch(NAME_PATTERN, reference.name):
        raise BadInput(f"{reference.name!r} is not a job's name: {NAME_MESSAGE}")
    check_namespace(reference.namespace)


def check_namespace(namespace: str | None) -> None:
    """Raise `BadInput` for an invalid name of a namespace."""
    if namespace is not None and (
        len(namespace) > MAX_NAMESPACE_CHARS or not re.fullmatch(NAMESPACE_PATTERN, namespace)
    ):
        raise BadInput(
            f"--namespace {namespace!r} is not a namespace's name: it has at most {MAX_NAMESPACE_CHARS} small letters, "
            "digits and dashes, and begins and ends with a letter or digit"
        )
