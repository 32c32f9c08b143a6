"""The commit to fetch. This module has no imports, so that the process that fetches it stays small."""

from __future__ import annotations

from dataclasses import dataclass

ORIGIN = "spec.source.git"
"""The job's field for it."""


@dataclass(frozen=True)
class GitPlace:
    """A folder of a commit; `path` is "" for the whole commit.

    `username` is the user name for the token; None: fetch without a token.
    """

    url: str
    commit: str
    path: str
    username: str | None = None
