"""The names of training jobs, and the attempt of a name."""

import pytest

from muster.api.spec.job import Metadata
from muster.core.training_job.name import attempt_of, name_stem, training_job_name

VIT = Metadata(name="vit", uid="uid-1")
STEM = name_stem(VIT)


@pytest.mark.parametrize(
    ("name", "attempt"),
    [
        (training_job_name(VIT, 1), 1),
        (training_job_name(VIT, 12), 12),
        (training_job_name(VIT.model_copy(update={"uid": "uid-2"}), 1), None),
        (training_job_name(VIT.model_copy(update={"name": "a-vit"}), 1), None),
        (f"{STEM}1-tuned", None),
        (f"{STEM}\N{ARABIC-INDIC DIGIT ONE}", None),
        (STEM, None),
    ],
)
def test_a_name_belongs_to_an_attempt_or_to_no_job(name: str, attempt: int | None) -> None:
    assert attempt_of(name, STEM) == attempt
