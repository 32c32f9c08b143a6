"""What muster refuses of a job for SageMaker, each thing with its place and what is allowed."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.load import load
from unit.api.api_resources import problems, resource
from unit.sagemaker.builders import sagemaker_spec

TABLE = Path(__file__).parent / "refused_jobs.yaml"


@dataclass(frozen=True)
class Row:
    at: str
    says: str
    value: dict[str, JSON]


def rows() -> list[Row]:
    (document,) = load(TABLE.read_text(), TABLE.name)
    table = document.value if isinstance(document.value, list) else []
    return [row_of(entry) for entry in table if isinstance(entry, dict)]


def row_of(entry: dict[str, JSON]) -> Row:
    spec, block = entry.get("spec"), entry.get("sagemaker")
    changed = sagemaker_spec(
        spec if isinstance(spec, dict) else {},
        block if isinstance(block, dict) else {},
    )
    return Row(str(entry["at"]), str(entry["says"]), resource(spec=changed))


ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.at} {row.says[:40]}" for row in ROWS])
def test_a_job_that_sagemaker_would_not_run_is_refused_in_words(row: Row) -> None:
    ((path, message),) = problems(row.value)
    assert path == row.at
    assert row.says in message


def test_the_job_below_the_table_is_valid() -> None:
    assert problems(resource(spec=sagemaker_spec({}, {}))) == []
