"""Setup for all tests."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["temporary_folder"]

# A shell starts background processes with SIGINT ignored, and every process of the tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long it takes to make an example depends on what else the machine does.
settings.register_profile("untimed", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("untimed")

ON_GPUS = "MUSTER_TEST_ON_GPUS"
"""Set by `make test-gpu`: the tests that need a GPU run, and fail if there is none."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need a GPU."""
    if item.get_closest_marker("gpu") and not os.environ.get(ON_GPUS):
        pytest.skip("it needs a GPU: `make test-gpu` runs it")
