"""Specs for SageMaker that muster refuses, each with its path and the allowed values."""

from support.rows import check_rows
from unit.api.api_resources import problems, resource
from unit.render.sagemaker.builders import sagemaker_spec
from unit.render.sagemaker.refused_jobs import REFUSED, RefusedJob


def test_a_job_that_sagemaker_would_not_run_is_refused_in_words() -> None:
    def check(row: RefusedJob) -> None:
        ((path, message),) = problems(resource(spec=row.spec))
        assert path == row.at
        assert row.says in message

    check_rows(REFUSED, check)


def test_the_job_below_the_table_is_valid() -> None:
    assert problems(resource(spec=sagemaker_spec({}, {}))) == []
