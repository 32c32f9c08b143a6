"""What the import of one manifest may use beyond the manifest. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import Document
from muster.importers.kubernetes.fields import Reading


@dataclass(frozen=True)
class Context:
    """The reading of the manifest, and the training runtimes by kind and name."""

    reading: Reading
    runtimes: Mapping[tuple[str, str], Document]
