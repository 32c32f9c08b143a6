"""A spec that SageMaker can't run becomes a condition of the resource, with its reason, before muster sends a
request.
"""

from __future__ import annotations

import asyncio

import pytest

from fakes.sagemaker_site.life import run_scenario
from fakes.sagemaker_site.site import HERE, Site, Wire
from muster.api.document import JSON
from unit.render.sagemaker.builders import sagemaker_spec
from unit.render.sagemaker.refused_jobs import REFUSED, RefusedJob

NO_SUCH_PYTHON: JSON = {"name": "PyTorch", "version": "1.13.1", "pythonVersion": "py310"}
"""AWS' image for Trainium has py38."""

ONLY_IN_THE_REQUEST = [
    RefusedJob(
        "spec.sagemaker.framework.pythonVersion",
        "found 'py310'; AWS has no such image for training: choose one of py38",
        sagemaker_spec({}, {"instanceType": "ml.trn1.32xlarge", "framework": NO_SUCH_PYTHON, "region": HERE.region}),
    ),
    RefusedJob(
        "spec.hyperparameters",
        "SageMaker allows 100",
        sagemaker_spec({"hyperparameters": {f"h{index}": 1 for index in range(95)}}, {"region": HERE.region}),
    ),
]


def test_a_job_that_sagemaker_would_not_run_is_not_accepted(wire: Wire) -> None:
    jobs = {f"job-{number}": row for number, row in enumerate([*REFUSED, *ONLY_IN_THE_REQUEST])}

    async def life(site: Site) -> None:
        for name, row in jobs.items():
            site.stored.create(name, row.spec)
        await site.wait_until(lambda: all(site.find_condition("Accepted", name)[0] for name in jobs))
        await site.wait_until_settled(600.0)
        for name, row in jobs.items():
            status, reason, message = site.find_condition("Accepted", name)
            assert (status, reason) == ("False", "Invalid"), row
            assert row.at in message, row
            assert row.says in message, row
        asked = {call.operation for call in site.service.calls}
        assert asked <= {"GetCallerIdentity", "ListTrainingJobs", "DescribeTrainingJob"}

    run_scenario(wire, life)


@pytest.mark.parametrize("refused", ONLY_IN_THE_REQUEST, ids=lambda row: row.at)
def test_a_refused_job_is_not_polled_before_its_spec_changes(wire: Wire, refused: RefusedJob) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", refused.spec)
        await site.wait_until(lambda: site.find_condition("Accepted")[0] == "False")
        await asyncio.sleep(60.0)
        asked = len(site.service.calls)
        await asyncio.sleep(600.0)
        assert len(site.service.calls) == asked
        site.stored.change("vit", suspend=True)
        await asyncio.sleep(60.0)
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)

    run_scenario(wire, life)
