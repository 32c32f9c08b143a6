"""One operator and one namespace for all attackers."""

from collections.abc import Iterator

import pytest

from cluster.operator.site import Site, new_site
from cluster.shared import Cluster


@pytest.fixture(scope="session")
def guarded(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a site with a running operator."""
    with new_site(cluster, "security", tmp_path_factory.mktemp("security")) as site:
        site.operators.start()
        yield site
