"""A file system that both SDKs describe alike, as what an input is read from. Pure."""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.reading import Arguments, shown

_ACCESS: dict[str | None, JSON] = {"ro": "ReadOnly", "rw": "ReadWrite"}


def file_system(found: Arguments, default_mode: str | None) -> JSON:
    """`inputs[].sagemaker.fileSystem`. `default_mode` is the SDK's where none is given; None: it wants one."""
    given = found.text("file_system_access_mode")
    mode = default_mode if given is None else given
    if mode not in _ACCESS:
        found.problems.add(found.where("file_system_access_mode"), f"found {shown(mode)}; ro or rw is expected")
    return {
        "type": found.text("file_system_type"),
        "id": found.text("file_system_id"),
        "path": found.text("directory_path"),
        "access": _ACCESS.get(mode),
    }
