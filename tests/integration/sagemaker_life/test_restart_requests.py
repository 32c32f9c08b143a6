"""Restarts and edited code that a user requests with annotations: SageMaker can't do it, and the resource says so."""

from __future__ import annotations

import pytest

from fakes.sagemaker_site.life import run_scenario_on
from fakes.sagemaker_site.site import Site, Wire, make_spec
from muster.api.names import RESTART_ANNOTATION, SOURCE_ANNOTATION
from muster.backends.sagemaker.jobs import NO_EDITED_SOURCES, NO_RESTART_REQUESTS


@pytest.mark.parametrize(
    ("annotation", "warning"), [(RESTART_ANNOTATION, NO_RESTART_REQUESTS), (SOURCE_ANNOTATION, NO_EDITED_SOURCES)]
)
def test_the_annotation_has_no_effect_and_the_condition_warns(wire: Wire, annotation: str, warning: str) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.stored.annotate("vit", **{annotation: "now"})
        await site.wait_until(lambda: warning in site.find_condition("Accepted")[2])
        assert site.find_condition("Accepted")[:2] == ("True", "ValidWithRemarks")
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        assert len(site.service.list_calls("CreateTrainingJob")) == 1

    run_scenario_on(lambda: Site(wire), life)
