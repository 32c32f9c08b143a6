"""Setup for all tests."""

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from support.searches import choose_example_count

pytest_plugins = ["temporary_folder"]

# A shell starts background processes with SIGINT ignored, and every process of the tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Hypothesis needs no time limit, because the time for an example depends on the load of the machine.
settings.register_profile(
    "untimed", suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=choose_example_count(100)
)
settings.load_profile("untimed")

ON_GPUS = "MUSTER_TEST_ON_GPUS"
"""Whether to run the tests that need a GPU, and to fail without a GPU. `make test-gpu` sets the variable."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from searching all modules and all tests again and again: they live until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need a GPU."""
    if item.get_closest_marker("gpu") and not os.environ.get(ON_GPUS):
        pytest.skip("it needs a GPU: `make test-gpu` runs it")
