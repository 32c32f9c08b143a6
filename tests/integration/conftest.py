"""Resources that tests in parallel share."""

import fcntl
import os
from collections.abc import Iterator

import pytest

from muster_dev.paths import ROOT
from support import sagemaker_image
from support.own_network import may_have_own_network, own_network


@pytest.fixture
def own_meeting_port() -> Iterator[None]:
    """Yield the rendezvous port of SageMaker jobs, of which a network has only one. As root the test gets its own
    network.

    Others use the machine's port in turn.
    """
    if may_have_own_network():
        # Nothing can be downloaded in the test's own network.
        sagemaker_image.fetch()
        with own_network():
            yield
        return
    checkout = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(checkout, fcntl.LOCK_EX)
        yield
    finally:
        os.close(checkout)
