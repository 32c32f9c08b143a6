"""What training jobs are called, and which attempt's a name is."""

import pytest

from muster.plan.training_job_name import attempt_of, name_stem, training_job_name

STEM = name_stem("vit", "uid-1")


@pytest.mark.parametrize(
    ("name", "attempt"),
    [
        (training_job_name("vit", "uid-1", 1), 1),
        (training_job_name("vit", "uid-1", 12), 12),
        (training_job_name("vit", "uid-2", 1), None),
        (training_job_name("a-vit", "uid-1", 1), None),
        (f"{STEM}1-tuned", None),
        (f"{STEM}\N{ARABIC-INDIC DIGIT ONE}", None),
        (STEM, None),
    ],
)
def test_a_name_is_an_attempts_or_nobodys(name: str, attempt: int | None) -> None:
    assert attempt_of(name, STEM) == attempt
