"""The request to the process that archives a commit, and its response, as JSON."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from muster.render.storage.errors import StorageError
from muster.render.storage.git_place import GitPlace
from muster.render.storage.source_archive import SourceArchive
from muster.storage.archive.confinement import Limits
from muster.storage.git.address_policy import AddressPolicy


@dataclass(frozen=True)
class ArchiveRequest:
    """`added` are additional files by path; `fetch_seconds` limits the time for fetching the commit."""

    place: GitPlace
    limits: Limits
    fetch_seconds: float
    added: Mapping[str, bytes] = field(default_factory=dict)
    reach: AddressPolicy = AddressPolicy.ANY
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ArchiveResponse:
    """One of `archive`, `problem` and `bug` (a traceback) is set. `confined`: Landlock restricts the process."""

    confined: bool
    archive: SourceArchive | None = None
    problem: StorageError | None = None
    bug: str | None = None


def request_to_json(order: ArchiveRequest) -> bytes:
    """Encode the request."""
    added = {path: b64encode(content).decode("ascii") for path, content in order.added.items()}
    fields = {
        "place": asdict(order.place),
        "limits": asdict(order.limits),
        "fetch_seconds": order.fetch_seconds,
        "added": added,
        "reach": order.reach.value,
        "token": order.token,
    }
    return json.dumps(fields).encode("ascii")


def request_from_json(text: bytes) -> ArchiveRequest:
    """Decode what `request_to_json` encoded."""
    fields: dict[str, Any] = json.loads(text)
    return ArchiveRequest(
        place=GitPlace(**fields["place"]),
        limits=Limits(**fields["limits"]),
        fetch_seconds=float(fields["fetch_seconds"]),
        added={path: b64decode(content) for path, content in fields["added"].items()},
        reach=AddressPolicy(fields["reach"]),
        token=fields["token"],
    )


def response_to_json(answer: ArchiveResponse) -> bytes:
    """Encode the response."""
    problem = answer.problem
    fields = {
        "confined": answer.confined,
        "archive": None if answer.archive is None else asdict(answer.archive),
        "problem": None
        if problem is None
        else {"reason": problem.reason, "message": problem.message, "may_pass": problem.may_pass},
        "bug": answer.bug,
    }
    return json.dumps(fields).encode("ascii")


def response_from_json(text: bytes) -> ArchiveResponse:
    """Decode what `response_to_json` encoded. Raises `ValueError` for other text: the process may be compromised."""
    try:
        fields: dict[str, Any] = json.loads(text)
        archive, problem = fields["archive"], fields["problem"]
        return ArchiveResponse(
            confined=bool(fields["confined"]),
            archive=None
            if archive is None
            else SourceArchive(int(archive["size"]), str(archive["sha256"]), str(archive["checksum"])),
            problem=None
            if problem is None
            else StorageError(str(problem["reason"]), str(problem["message"]), may_pass=bool(problem["may_pass"])),
            bug=None if fields["bug"] is None else str(fields["bug"]),
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("the text is not an answer") from error
