"""Specs for SageMaker that muster refuses, each with its path and the allowed values."""

import pytest

from unit.api.api_resources import problems, resource
from unit.render.sagemaker.builders import sagemaker_spec
from unit.render.sagemaker.refused_jobs import REFUSED, RefusedJob


@pytest.mark.parametrize("row", REFUSED, ids=[f"{row.at} {row.says[:40]}" for row in REFUSED])
def test_a_job_that_sagemaker_would_not_run_is_refused_in_words(row: RefusedJob) -> None:
    ((path, message),) = problems(resource(spec=row.spec))
    assert path == row.at
    assert row.says in message


def test_the_job_below_the_table_is_valid() -> None:
    assert problems(resource(spec=sagemaker_spec({}, {}))) == []
