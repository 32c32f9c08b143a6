"""The board in the chart, as helm renders it: no cluster is needed."""

from typing import Any

import pytest

from cluster import chart
from cluster.helm import Values

INGRESS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}
TLS = {"secretName": "board-tls", "hosts": ["board.example.com"]}


def values(**board: object) -> Values:
    return {"image": {"repository": "registry.example/muster"}, "board": board}


def render(**board: object) -> list[dict[str, Any]]:
    return chart.render(values(enabled=True, **board))


def list_board_objects(objects: list[dict[str, Any]]) -> list[str]:
    return sorted(each["kind"] for each in objects if each["metadata"]["name"].startswith("muster-board"))


def test_the_board_is_off() -> None:
    assert list_board_objects(chart.render(values(logs=True, tls=TLS))) == []


def test_the_board_listens_only_inside_of_its_pod() -> None:
    objects = render()
    spec = chart.one(objects, "StatefulSet")["spec"]
    [container] = spec["template"]["spec"]["containers"]
    assert container["args"] == ["board-server", "--port=8090", "--health-port=8080"]
    assert container["ports"] == [{"name": "health", "containerPort": 8080}]
    assert spec["template"]["spec"]["serviceAccountName"] == "muster-board"
    assert "muster-board" not in {each["metadata"]["name"] for each in objects if each["kind"] == "Service"}
    assert chart.one(objects, "NetworkPolicy", "muster-board")["spec"]["ingress"] == [{"ports": [{"port": "health"}]}]


def test_the_board_s_pod_is_as_restricted_namespaces_want_it() -> None:
    spec = chart.one(render(), "StatefulSet")["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_operator_s_services_and_policies_don_t_select_the_board() -> None:
    objects = render(tls=TLS)
    labels = chart.one(objects, "StatefulSet")["spec"]["template"]["metadata"]["labels"].items()
    selectors = {
        (each["kind"], each["metadata"]["name"]): selector
        for each in objects
        if (selector := each.get("spec", {}).get("selector") or each.get("spec", {}).get("podSelector"))
    }
    selected = {
        name for (_, name), selector in selectors.items() if selector.get("matchLabels", selector).items() <= labels
    }
    assert selected == {"muster-board"}


def test_all_values_arrive() -> None:
    tls = {**TLS, "port": 9444, "clients": [INGRESS]}
    objects = render(port=9090, logs=True, tls=tls, resources={"limits": {"memory": "2Gi"}})
    spec = chart.one(objects, "StatefulSet")["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert container["args"] == [
        "board-server",
        "--port=9090",
        "--health-port=8080",
        "--logs",
        "--tls-port=9444",
        "--tls-dir=/etc/muster-board",
        "--tls-host=board.example.com",
    ]
    assert container["resources"]["limits"] == {"memory": "2Gi"}
    assert {"name": "tls", "secret": {"secretName": "board-tls"}} in spec["volumes"]
    assert chart.one(objects, "Service", "muster-board")["spec"]["ports"] == [
        {"name": "https", "port": 443, "targetPort": "board"}
    ]
    rules = chart.one(objects, "NetworkPolicy", "muster-board")["spec"]["ingress"]
    assert rules[1] == {"from": [INGRESS], "ports": [{"port": "board"}]}


def test_readers_reach_only_the_board_s_pod() -> None:
    for rule in chart.one(render(), "Role", "muster-board-readers")["rules"]:
        assert rule["resourceNames"] == ["muster-board-0"]


@pytest.mark.parametrize(
    ("board", "said"),
    [
        ({"port": 8080}, "port"),
        ({"tls": {"secretName": "a", "hosts": []}}, "board.tls.hosts is empty"),
        ({"tls": {**TLS, "port": 8090}}, "board.port and board.tls.port are both 8090"),
        ({"tls": {**TLS, "hosts": ["https://a"]}}, "hosts"),
        ({"log": True}, "log"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(board: dict[str, object], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        chart.render(values(enabled=True, **board))
