"""One namespace and one operator for the tests of the resource's fields."""

from collections.abc import Iterator

import pytest

from cluster.operator.cluster_jobs import Jobs
from cluster.operator.site import Site, new_site
from cluster.shared import SharedCluster


@pytest.fixture(scope="session")
def fields_site(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a site with a ready operator."""
    with new_site(shared_cluster, "fields", tmp_path_factory.mktemp("fields")) as site:
        site.operators.start()
        yield site


@pytest.fixture
def jobs(fields_site: Site) -> Jobs:
    """Return the jobs of that namespace."""
    return fields_site.jobs
