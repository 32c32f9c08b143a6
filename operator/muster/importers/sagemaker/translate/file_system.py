"""Convert a file system of SDK 2 or SDK 3 to an input's source. Pure."""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, describe_value

_ACCESS: dict[str | None, JSON] = {"ro": "ReadOnly", "rw": "ReadWrite"}


def convert_file_system(settings: Arguments, default_mode: str | None) -> JSON:
    """Return `inputs[].sagemaker.fileSystem`. `default_mode` is the SDK's default; None if the SDK has no default."""
    value = settings.take_text("file_system_access_mode")
    mode = default_mode if value is None else value
    if mode not in _ACCESS:
        settings.problems.add(
            settings.describe_argument("file_system_access_mode"), f"found {describe_value(mode)}; ro or rw is expected"
        )
    return {
        "type": settings.take_text("file_system_type"),
        "id": settings.take_text("file_system_id"),
        "path": settings.take_text("directory_path"),
        "access": _ACCESS.get(mode),
    }
