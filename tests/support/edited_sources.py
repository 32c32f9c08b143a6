"""Packs edited code as `muster rerun` does."""

import hashlib
import io
from base64 import b64encode
from collections.abc import Mapping

from muster.render.storage.source_archive import make_members, pack_files
from muster.render.storage.source_files import make_files
from muster_worker.contract.source import EditedSource


def pack_source(texts: Mapping[str, str]) -> EditedSource:
    """Return the source with these files."""
    archive = io.BytesIO()
    pack_files(make_members(make_files(texts)), archive)
    return make_source(archive.getvalue())


def make_source(archive: bytes) -> EditedSource:
    """Return the source with this archive, which may be any bytes."""
    return EditedSource(hashlib.sha256(archive).hexdigest(), b64encode(archive).decode("ascii"))
