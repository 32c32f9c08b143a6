"""One namespace for all who delete and change what muster made, and operators that come and go there."""

from collections.abc import Iterator

import pytest

from cluster.operator.operator_process import OperatorProcess
from cluster.operator.site import Site, new_site
from cluster.shared import SharedCluster


@pytest.fixture(scope="session")
def site(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """No operator runs there unless `operator` is asked for."""
    with new_site(shared_cluster, "leftovers", tmp_path_factory.mktemp("leftovers")) as made:
        yield made


@pytest.fixture
def operator(site: Site) -> OperatorProcess:
    """One that runs: that of the test before, if it does."""
    if site.operators.started and site.operators.started[-1].runs:
        return site.operators.started[-1]
    return site.operators.start()
