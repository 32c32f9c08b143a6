"""One namespace, one operator and one image for all MPI jobs of a run."""

from collections.abc import Iterator

import pytest

from cluster import packages
from cluster.conftest import not_run
from cluster.mpi.mpi_image import mpi_image
from cluster.mpi.mpi_site import MpiSite
from cluster.operator.site import new_site
from cluster.say import CannotGoOn
from cluster.shared import SharedCluster


@pytest.fixture(scope="session")
def mpi_site(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MpiSite]:
    """Yield a site with a ready operator."""
    shared_cluster.up()
    try:
        image = mpi_image(packages.provide())
    except CannotGoOn as why:
        not_run(str(why))
    shared_cluster.load(image)
    with new_site(shared_cluster, "mpi", tmp_path_factory.mktemp("mpi")) as site:
        site.operators.start()
        yield MpiSite(site, image.name)
