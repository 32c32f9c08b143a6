"""The chart of the version before this one (tests/cluster/previous)."""

import tarfile
from pathlib import Path

PREVIOUS_CHART = Path(__file__).parent / "previous" / "muster.tgz"


def read_previous_crds() -> list[str]:
    """Return the text of each CustomResourceDefinition of that version."""
    with tarfile.open(PREVIOUS_CHART) as archive:
        members = [member for member in archive if member.name.startswith("muster/crds/")]
        files = [archive.extractfile(member) for member in members]
        return [file.read().decode() for file in files if file is not None]
