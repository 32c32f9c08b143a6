"""One namespace and one operator for all that a resource's fields do."""

from collections.abc import Iterator

import pytest

from cluster.operator.cluster_jobs import Jobs
from cluster.operator.site import Site, new_site
from cluster.shared import Cluster


@pytest.fixture(scope="session")
def fields_site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With an operator that is ready."""
    with new_site(cluster, "fields", tmp_path_factory.mktemp("fields")) as site:
        site.operators.start()
        yield site


@pytest.fixture
def jobs(fields_site: Site) -> Jobs:
    """The jobs of that namespace."""
    return fields_site.jobs
