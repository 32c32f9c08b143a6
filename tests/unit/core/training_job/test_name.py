"""The names of training jobs, and the attempt in a name."""

import pytest

from muster.api.spec.job import Metadata
from muster.core.training_job.name import build_name_prefix, build_training_job_name, parse_attempt

METADATA = Metadata(name="vit", uid="uid-1")
STEM = build_name_prefix(METADATA)


@pytest.mark.parametrize(
    ("name", "attempt"),
    [
        (build_training_job_name(METADATA, 1), 1),
        (build_training_job_name(METADATA, 12), 12),
        (build_training_job_name(METADATA.model_copy(update={"uid": "uid-2"}), 1), None),
        (build_training_job_name(METADATA.model_copy(update={"name": "a-vit"}), 1), None),
        (f"{STEM}1-tuned", None),
        (f"{STEM}\N{ARABIC-INDIC DIGIT ONE}", None),
        (STEM, None),
    ],
)
def test_a_name_belongs_to_an_attempt_or_to_no_job(name: str, attempt: int | None) -> None:
    assert parse_attempt(name, STEM) == attempt
