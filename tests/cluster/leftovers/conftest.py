"""One namespace for tests that delete and change muster's objects, and successive operators for it."""

from collections.abc import Iterator

import pytest

from cluster.operator.operator_process import OperatorProcess
from cluster.operator.site import Site, new_site
from cluster.shared import SharedCluster


@pytest.fixture(scope="session")
def site(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a site whose operator runs only with the fixture `operator`."""
    with new_site(shared_cluster, "leftovers", tmp_path_factory.mktemp("leftovers")) as made:
        yield made


@pytest.fixture
def operator(site: Site) -> OperatorProcess:
    """Return a running operator: the previous test's, if it still runs."""
    if site.operators.started and site.operators.started[-1].runs:
        return site.operators.started[-1]
    return site.operators.start()
