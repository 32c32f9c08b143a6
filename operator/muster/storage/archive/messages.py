"""The request to the process that archives a commit, and its response, as JSON."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from muster.render.storage.errors import StorageError
from muster.render.storage.git_folder import GitFolder
from muster.render.storage.source_archive import SourceArchive
from muster.storage.archive.confinement import Limits
from muster.storage.git.address_policy import AddressPolicy


@dataclass(frozen=True)
class ArchiveRequest:
    """A request for an archive of a commit and of the files `added`. `fetch_seconds` limits the time for the fetch."""

    repository: GitFolder
    limits: Limits
    fetch_seconds: float
    added: Mapping[str, bytes] = field(default_factory=dict)
    address_policy: AddressPolicy = AddressPolicy.ANY
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ArchiveResponse:
    """One of `archive`, `problem` and `traceback` is set. `confined` is set if Landlock restricts the process."""

    confined: bool
    archive: SourceArchive | None = None
    problem: StorageError | None = None
    traceback: str | None = None


def encode_request(request: ArchiveRequest) -> bytes:
    """Encode the request."""
    added = {path: b64encode(content).decode("ascii") for path, content in request.added.items()}
    fields = {
        "repository": asdict(request.repository),
        "limits": asdict(request.limits),
        "fetch_seconds": request.fetch_seconds,
        "added": added,
        "address_policy": request.address_policy.value,
        "token": request.token,
    }
    return json.dumps(fields).encode("ascii")


def decode_request(text: bytes) -> ArchiveRequest:
    """Decode the text from `encode_request`."""
    fields: dict[str, Any] = json.loads(text)
    return ArchiveRequest(
        repository=GitFolder(**fields["repository"]),
        limits=Limits(**fields["limits"]),
        fetch_seconds=float(fields["fetch_seconds"]),
        added={path: b64decode(content) for path, content in fields["added"].items()},
        address_policy=AddressPolicy(fields["address_policy"]),
        token=fields["token"],
    )


def encode_response(response: ArchiveResponse) -> bytes:
    """Encode the response."""
    problem = response.problem
    fields = {
        "confined": response.confined,
        "archive": None if response.archive is None else asdict(response.archive),
        "problem": None
        if problem is None
        else {"reason": problem.reason, "message": problem.message, "is_retryable": problem.is_retryable},
        "traceback": response.traceback,
    }
    return json.dumps(fields).encode("ascii")


def decode_response(text: bytes) -> ArchiveResponse:
    """Decode the text from `encode_response`. Raises `ValueError` for other text from a compromised process."""
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
            else StorageError(
                str(problem["reason"]), str(problem["message"]), is_retryable=bool(problem["is_retryable"])
            ),
            traceback=None if fields["traceback"] is None else str(fields["traceback"]),
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("the text is not a response") from error
