"""A namespace with an operator for all tests of the queues, and the real queues. They are built at the first use."""

from collections.abc import Iterator

import pytest

from cluster.conftest import not_run
from cluster.helm import Helm
from cluster.operator.site import Site, new_site
from cluster.queues import coscheduling_site, kueue_site
from cluster.queues.gangs import Gangs
from cluster.say import CannotGoOn
from cluster.shared import SharedCluster


@pytest.fixture(scope="module")
def site(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a site with a ready operator."""
    with new_site(shared_cluster, "queues", tmp_path_factory.mktemp("queues"), queues=("coscheduling",)) as site:
        site.operators.start()
        yield site


@pytest.fixture(scope="module")
def kueue(shared_cluster: SharedCluster, site: Site) -> Iterator[Gangs]:
    """Yield gangs in a LocalQueue with room for one of them."""
    try:
        with kueue_site.install(shared_cluster, site.kubectl, Helm(shared_cluster.kubeconfig), site.namespace):
            site.kubectl.apply(*kueue_site.make_queues(site.namespace))
            yield Gangs(site, {"kueue": kueue_site.QUEUE}, kueue_site.POD_CPU)
    except CannotGoOn as why:
        not_run(str(why))


@pytest.fixture(scope="module")
def coscheduling(shared_cluster: SharedCluster, site: Site) -> Iterator[Gangs]:
    """Yield gangs whose pods fill half a machine each."""
    try:
        with coscheduling_site.install(shared_cluster, site.kubectl, Helm(shared_cluster.kubeconfig)):
            yield Gangs(site, {"coscheduling": {}}, coscheduling_site.measure_half_a_machine(site.kubectl))
            site.jobs.run("delete", "dtj", "--all")
    except CannotGoOn as why:
        not_run(str(why))
