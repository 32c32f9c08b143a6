from collections.abc import Iterator

import pytest

from integration.run.muster_run import end_all


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    end_all()
