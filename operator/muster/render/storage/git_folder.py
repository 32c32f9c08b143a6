"""The commit to fetch. This module imports no other module of muster, so that the process that fetches stays small."""

from __future__ import annotations

from dataclasses import dataclass

GIT_FIELD = "spec.source.git"
"""The job's field with the commit."""


@dataclass(frozen=True)
class GitFolder:
    """A folder of a commit; `path` is "" for the whole commit.

    `username` is the user name for the token; None means to fetch without a token.
    """

    url: str
    commit: str
    path: str
    username: str | None = None
