"""Credentials for AWS are in no status, event or log, even if AWS refuses them."""

from __future__ import annotations

import json
import logging

import pytest

from fakes.fake_credentials import FAKE_VARIABLES
from fakes.sagemaker_service.faults import Fault
from fakes.sagemaker_site.life import run_scenario
from fakes.sagemaker_site.site import Site, Wire, make_spec

PROOFS = (FAKE_VARIABLES["AWS_SECRET_ACCESS_KEY"], "Signature=", "AWS4-HMAC-SHA256")


def test_secrets_are_nowhere_to_be_read(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    async def life(site: Site) -> None:
        await _stalls(site, "unknown", Fault.UNKNOWN_CALLER)
        await _stalls(site, "expired", Fault.EXPIRED)
        site.service.faults.chance = lambda _: None
        await site.wait_until(lambda: {site.get_phase(name) for name in site.stored.kept} == {"Succeeded"})
        assert site.operator is not None
        value = [json.dumps(site.stored.statuses), json.dumps(site.stored.events), caplog.text]
        value += [repr(vars(site.operator.aws)), repr(vars(site.wire.aws)), repr(site.operator.jobs)]
        assert "Credentials" in value[0]
        for proof in PROOFS:
            assert not [text for text in value if proof in text]

    with caplog.at_level(logging.DEBUG):
        run_scenario(wire, life)


async def _stalls(site: Site, name: str, fault: Fault) -> None:
    """Apply a job while AWS refuses our credentials, and wait for the condition."""
    site.service.faults.chance = lambda _: fault
    site.stored.create(name, make_spec())
    await site.wait_until(lambda: site.find_condition("Stalled", name)[0] == "True")
