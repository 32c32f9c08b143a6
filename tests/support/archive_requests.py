"""Builds requests for an archive, as the operator sends them."""

from __future__ import annotations

from muster.render.storage.git_folder import GitFolder
from muster.storage.archive.confinement import Limits
from muster.storage.archive.messages import ArchiveRequest

LIMITS = Limits(memory_bytes=128 * 2**20, address_bytes=2**30, cpu_seconds=60, file_bytes=600 * 2**20, seconds=120.0)


def build_archive_request(url: str, name: str = "1" * 40, limits: Limits = LIMITS) -> ArchiveRequest:
    """Return a request for the archive of one commit, without a token."""
    return ArchiveRequest(GitFolder(url, name, ""), limits, fetch_seconds=60.0)
