"""One namespace and one operator for jobs whose nodes have a second network."""

from collections.abc import Iterator

import pytest

from cluster.operator.site import Site, new_site
from cluster.shared import SharedCluster


@pytest.fixture(scope="session")
def fabric_site(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a site with a ready operator."""
    with new_site(shared_cluster, "fabric", tmp_path_factory.mktemp("fabric")) as site:
        site.operators.start()
        yield site
