"""The table of jobs for SageMaker that muster refuses (refused_jobs.yaml)."""

from dataclasses import dataclass
from pathlib import Path

from muster.api.document import JSON
from muster.api.yaml.load import load_documents
from unit.render.sagemaker.builders import sagemaker_spec

_TABLE = Path(__file__).with_suffix(".yaml")


@dataclass(frozen=True)
class RefusedJob:
    """A job's spec, the path in the message, and a part of the message."""

    at: str
    says: str
    spec: dict[str, JSON]


def _rows() -> list[RefusedJob]:
    (document,) = load_documents(_TABLE.read_text(encoding="utf-8"), _TABLE.name)
    table = document.value if isinstance(document.value, list) else []
    return [_row(entry) for entry in table if isinstance(entry, dict)]


def _row(entry: dict[str, JSON]) -> RefusedJob:
    spec, block = entry.get("spec"), entry.get("sagemaker")
    changed = sagemaker_spec(spec if isinstance(spec, dict) else {}, block if isinstance(block, dict) else {})
    return RefusedJob(str(entry["at"]), str(entry["says"]), changed)


REFUSED = _rows()
