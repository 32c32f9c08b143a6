"""Metrics in the chart, as helm renders it: no cluster is needed."""

import json
from typing import Any

import pytest
import yaml

from cluster import chart
from cluster.helm import CHART, Values

PROMETHEUS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
KINDS_OF_PROMETHEUS = {"PodMonitor", "ServiceMonitor", "PrometheusRule"}


def values(**metrics: object) -> Values:
    return {"image": {"repository": "registry.example/muster"}, "metrics": metrics}


def render(**metrics: object) -> list[dict[str, Any]]:
    return chart.render(values(**metrics))


def ingress(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rules of the NetworkPolicy for the port of the metrics."""
    rules = chart.one(objects, "NetworkPolicy")["spec"]["ingress"]
    return [rule for rule in rules if {"port": "metrics"} in rule["ports"]]


def test_metrics_are_on_and_nobody_may_scrape_before_the_values_say_so() -> None:
    objects = render()
    [container] = chart.one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--metrics-port=8081" in container["args"]
    assert {"name": "metrics", "containerPort": 8081} in container["ports"]
    service = chart.one(objects, "Service", "muster-metrics")["spec"]
    assert (service["type"], service["ports"]) == (
        "ClusterIP",
        [{"name": "metrics", "port": 8081, "targetPort": "metrics"}],
    )
    assert ingress(objects) == []
    assert not KINDS_OF_PROMETHEUS & {each["kind"] for each in objects}
    assert "ConfigMap" not in {each["kind"] for each in objects}


def test_only_the_scrapers_of_the_values_may_connect() -> None:
    assert ingress(render(scrapers=[PROMETHEUS])) == [{"from": [PROMETHEUS], "ports": [{"port": "metrics"}]}]


def test_without_metrics_there_is_no_port() -> None:
    objects = render(enabled=False, scrapers=[PROMETHEUS], alerts={"enabled": True}, podMonitor={"enabled": True})
    [container] = chart.one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert not [each for each in container["args"] if "metrics" in each]
    assert "metrics" not in {port["name"] for port in container["ports"]}
    assert ingress(objects) == []
    assert "muster-metrics" not in {each["metadata"]["name"] for each in objects}
    assert not KINDS_OF_PROMETHEUS & {each["kind"] for each in objects}


def test_a_pod_monitor_finds_the_pods() -> None:
    objects = render(podMonitor={"enabled": True, "interval": "15s", "labels": {"release": "stack"}})
    monitor = chart.one(objects, "PodMonitor")
    labels = chart.one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert monitor["metadata"]["labels"]["release"] == "stack"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": "metrics", "honorLabels": True, "interval": "15s"}]


@pytest.mark.parametrize(
    ("value", "kind", "field"),
    [("podMonitor", "PodMonitor", "podMetricsEndpoints"), ("serviceMonitor", "ServiceMonitor", "endpoints")],
)
def test_a_monitor_takes_the_options_of_an_endpoint(value: str, kind: str, field: str) -> None:
    rule = {"targetLabel": "cluster", "replacement": "a"}
    drop = {"action": "drop", "sourceLabels": ["__name__"], "regex": "process_.*"}
    options = {"interval": "1m", "scrapeTimeout": "20s", "relabelings": [rule], "metricRelabelings": [drop]}
    monitor = chart.one(render(**{value: {"enabled": True, **options}}), kind)
    assert monitor["spec"][field] == [{"port": "metrics", "honorLabels": True, **options}]


def test_a_service_monitor_finds_only_the_service_of_the_metrics() -> None:
    objects = render(serviceMonitor={"enabled": True})
    wanted = chart.one(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    services = [each for each in objects if each["kind"] == "Service"]
    found = [each["metadata"]["name"] for each in services if wanted <= each["metadata"]["labels"].items()]
    assert found == ["muster-metrics"]


def test_rules_and_dashboard_are_those_of_the_files() -> None:
    folder = {"grafana_folder": "muster"}
    objects = render(
        alerts={"enabled": True, "labels": {"release": "stack"}}, dashboard={"enabled": True, "annotations": folder}
    )
    rules = yaml.safe_load((CHART / "alerts" / "muster.yaml").read_text(encoding="utf-8"))
    assert chart.one(objects, "PrometheusRule")["spec"] == rules
    dashboard = chart.one(objects, "ConfigMap", "muster-dashboard")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["metadata"]["annotations"] == folder
    file = CHART / "dashboards" / "muster.json"
    assert json.loads(dashboard["data"]["muster.json"]) == json.loads(file.read_text(encoding="utf-8"))


def test_alerts_have_the_url_of_the_teams_runbook() -> None:
    url = "https://wiki.example/muster"
    rules = chart.one(render(alerts={"enabled": True, "runbookUrl": url}), "PrometheusRule")["spec"]
    alerts = [alert for group in rules["groups"] for alert in group["rules"]]
    assert alerts
    for alert in alerts:
        assert alert["annotations"]["runbook_url"] == f"{url}#{alert['alert'].lower()}"


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"port": 8080}, "port"),
        ({"port": 8443}, "metrics.port and collector.port are both 8443"),
        ({"scrapers": ["monitoring"]}, "scrapers"),
        ({"alerts": {"enabled": True, "runbookUrl": "wiki.example"}}, "runbookUrl"),
        ({"scrapers": [{}]}, "scrapers"),
        ({"podMonitor": {"enabled": True, "every": "1m"}}, "every"),
        ({"podMonitor": {"enabled": True, "scrapeTimeout": "soon"}}, "scrapeTimeout"),
        ({"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}, "scrapes each replica twice"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(metrics: dict[str, object], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        chart.render(values(**metrics))
