from collections.abc import Iterator

import pytest

from integration.run.muster_run import end, list_started


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """End the runs that a test has started, and not those that the tests of a module share."""
    shared = list_started()
    yield
    end(started for started in list_started() if started not in shared)
