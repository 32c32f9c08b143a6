"""What tests that run side by side have one of."""

import fcntl
import os
from collections.abc import Iterator

import pytest

from muster_dev.places import ROOT
from support.own_network import may_have_own_network, own_network


@pytest.fixture
def own_meeting_port() -> Iterator[None]:
    """The port where the ranks of SageMaker jobs meet: a network has it once. Root gives the test a network of its own.

    Others take turns at the machine's.
    """
    if may_have_own_network():
        with own_network():
            yield
        return
    checkout = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(checkout, fcntl.LOCK_EX)
        yield
    finally:
        os.close(checkout)
