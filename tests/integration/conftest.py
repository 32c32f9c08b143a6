"""What tests that run side by side have one of."""

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def turn_at_the_meeting_port() -> Iterator[None]:
    """The machine has one port where the ranks of SageMaker jobs meet: these tests take turns at it."""
    with (Path(tempfile.gettempdir()) / "muster-tests-meeting-port").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
