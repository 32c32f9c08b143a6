"""Scrapes of the replicas of a release: the image and the chart have what metrics need."""

from cluster.installation import Installation
from cluster.shared import SharedCluster
from support.scraped_metrics import parse_scrape


def test_each_replica_answers_and_one_leads(installed_operator: Installation, shared_cluster: SharedCluster) -> None:
    del shared_cluster  # on others, the NetworkPolicy may refuse the API server's proxy
    kubectl, system = installed_operator.kubectl, installed_operator.system
    kubectl("rollout", "status", "deployment/muster", f"--namespace={system}", "--timeout=60s")
    paths = [f"/api/v1/namespaces/{system}/pods/{pod}:8081/proxy/metrics" for pod in installed_operator.pods]
    scrapes = [parse_scrape(kubectl("get", f"--raw={path}")) for path in paths]
    assert len(scrapes) == 2
    assert sorted(scrape.get_value("muster_leader") or 0 for scrape in scrapes) == [0, 1]
    assert all(scrape.get_value("muster_reconciles_total", result="Bug") == 0 for scrape in scrapes)
