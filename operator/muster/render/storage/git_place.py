"""A commit as it is asked for. Imports nothing: the process that fetches it stays small."""

from __future__ import annotations

from dataclasses import dataclass

ORIGIN = "spec.source.git"
"""The field of a job that names it."""


@dataclass(frozen=True)
class GitPlace:
    """A folder of a commit; `path` is "" for all of it.

    `username` is whom the host takes the token for; None: the repository is read without a token.
    """

    url: str
    commit: str
    path: str
    username: str | None = None
