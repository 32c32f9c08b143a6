"""The chart as helm renders it: no cluster is needed."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cluster import chart, rights
from cluster.helm import CHART, Values
from cluster.places import ROOT
from cluster.rights import EVERYWHERE
from muster.api.config.operator import OperatorConfig, read_config
from muster.api.yaml.load import load_documents

IMAGE: Values = {"image": {"repository": "registry.example/muster"}}
EVERYTHING: Values = {
    "image": {
        "repository": "registry.example/muster",
        "digest": f"sha256:{'0' * 64}",
        "pullPolicy": "Always",
        "pullSecrets": ["registry"],
    },
    "replicas": 3,
    "namespaces": ["a", "b"],
    "clusterDomain": "example.internal",
    "nodePools": [{"name": "p5", "instanceType": "p5.48xlarge", "zone": "Same"}, {"name": "cpu", "machine": "Any"}],
    "sagemaker": {"region": "us-west-2"},
    "tenancy": [
        {
            "namespaces": ["a"],
            "buckets": [{"name": "data", "prefixes": ["a/"]}],
            "gitHosts": ["git.example"],
            "awsResources": ["sg-1"],
        }
    ],
    "storage": {"s3Endpoint": "http://minio.example:9000"},
    "gitSecrets": [{"namespace": "a", "names": ["git-token"]}],
    "queues": {"volcano": True, "coscheduling": True},
    "collector": {"port": 9443},
    "agent": {"image": "mirror.example/muster:1", "pullPolicy": "Never"},
    "userRoles": False,
    "networkPolicy": {
        "enabled": True,
        "hostNetworkCIDRs": ["10.0.0.0/16"],
        "apiServerCIDRs": ["172.18.0.2/32", "fd00::2/128"],
    },
    "webhook": {"enabled": True, "port": 9444},
    "disruptions": {"taints": ["karpenter.sh/disrupted"]},
    "metrics": {"port": 8082, "alerts": {"enabled": True}, "podMonitor": {"enabled": True}},
    "serviceAccount": {"annotations": {"a": "b"}},
    "resources": {"limits": {"memory": "2Gi"}},
    "priorityClassName": "high",
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
SETTINGS = [IMAGE, EVERYTHING, {**IMAGE, "replicas": 1}, {**IMAGE, "resources": None}]
ACCOUNT = f"{chart.NAMESPACE}:muster"


@pytest.mark.parametrize("values", [{}, *SETTINGS])
def test_helm_finds_nothing_to_say(values: Values) -> None:
    assert "0 chart(s) failed" in chart.lint(values)


def pod_specs(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the spec of each pod: of the operator, and of the hooks."""
    for each in objects:
        if each["kind"] in {"Deployment", "Job"}:
            yield each["spec"]["template"]["spec"]
        if each["kind"] == "Pod":
            yield each["spec"]


@pytest.mark.parametrize("values", SETTINGS)
def test_a_pod_is_as_restricted_namespaces_want_it(values: Values) -> None:
    for spec in pod_specs(chart.render(values)):
        [container] = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_all_values_arrive() -> None:
    objects = chart.render(EVERYTHING)
    template = chart.one(objects, "Deployment")["spec"]["template"]
    spec = template["spec"]
    [container] = spec["containers"]
    assert container["image"] == f"registry.example/muster@sha256:{'0' * 64}"
    assert container["args"] == [
        "operator",
        "--namespace=a",
        "--namespace=b",
        "--collector-port=9443",
        "--collector-url=https://muster-collector.muster-system.svc.example.internal:9443",
        "--collector-address=$(POD_IPS)",
        "--identity=$(POD_NAME)_$(POD_UID)",
        "--health-port=8080",
        "--cluster-domain=example.internal",
        "--agent-image=mirror.example/muster:1",
        f"--storage-image=registry.example/muster@sha256:{'0' * 64}",
        "--pull-policy=Never",
        "--webhook-port=9444",
        "--webhook-address=muster-webhook.muster-system.svc",
        "--metrics-port=8082",
        "--lease-namespace=muster-system",
        "--lease-name=muster",
        "--shard=0/1",
        "--config=/etc/muster/config.yaml",
    ]
    assert {"name": "config", "mountPath": "/etc/muster", "readOnly": True} in container["volumeMounts"]
    assert container["resources"]["limits"]["memory"] == "2Gi"
    assert (spec["priorityClassName"], spec["nodeSelector"]) == ("high", {"a": "b"})
    assert (spec["imagePullSecrets"], spec["tolerations"]) == ([{"name": "registry"}], [{"operator": "Exists"}])
    assert "topologySpreadConstraints" not in spec
    assert template["metadata"]["labels"]["a"] == template["metadata"]["annotations"]["a"] == "b"
    assert chart.one(objects, "Service", "muster-collector")["spec"]["ports"][0]["port"] == 9443
    assert chart.one(objects, "ServiceAccount", "muster")["metadata"]["annotations"] == {"a": "b"}
    policy = chart.one(objects, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert {"ipBlock": {"cidr": "10.0.0.0/16"}} in policy["ingress"][0]["from"]
    assert policy["ingress"][1] == {"ports": [{"port": "health"}]}
    api_servers = [{"ipBlock": {"cidr": "172.18.0.2/32"}}, {"ipBlock": {"cidr": "fd00::2/128"}}]
    assert policy["ingress"][2] == {"ports": [{"port": "webhook"}], "from": api_servers}


def test_any_client_may_call_the_webhook_if_no_api_server_has_a_known_address() -> None:
    policy = chart.one(chart.render({**IMAGE, "webhook": {"enabled": True}}), "NetworkPolicy")["spec"]
    assert policy["ingress"][2] == {"ports": [{"port": "webhook"}]}


def spread_of(values: Values, name: str = "muster") -> list[dict[str, Any]]:
    spec = chart.one(chart.render({**IMAGE, **values}), "Deployment", name)["spec"]["template"]["spec"]
    constraints: list[dict[str, Any]] = spec.get("topologySpreadConstraints", [])
    return constraints


@pytest.mark.parametrize("shard", [0, 1])
def test_replicas_prefer_different_nodes_and_zones(shard: int) -> None:
    name = f"muster-{shard}" if shard else "muster"
    constraints = spread_of({"shards": 2}, name)
    assert [each["topologyKey"] for each in constraints] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    deployment = chart.one(chart.render({**IMAGE, "shards": 2}), "Deployment", name)
    for each in constraints:
        assert (each["maxSkew"], each["whenUnsatisfiable"]) == (1, "ScheduleAnyway")
        assert each["labelSelector"] == deployment["spec"]["selector"]
        assert each["matchLabelKeys"] == ["pod-template-hash"]


def test_constraints_of_the_values_count_the_replicas_unless_they_say_otherwise() -> None:
    must = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    [constraint] = spread_of({"topologySpreadConstraints": [must], "affinity": {"nodeAffinity": {}}})
    assert must.items() <= constraint.items()
    assert constraint["labelSelector"]["matchLabels"]["muster.dev/shard"] == "0"
    own = {"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": []}
    assert spread_of({"topologySpreadConstraints": [{**must, **own}]}) == [{**must, **own}]


def config_of(values: Values) -> tuple[OperatorConfig, str]:
    """Return the operator's configuration, and the annotation that restarts it with another configuration."""
    objects = chart.render(values)
    text = chart.one(objects, "ConfigMap")["data"]["config.yaml"]
    (document,) = load_documents(text, "config.yaml")
    annotations = chart.one(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    return read_config(document), annotations["muster.dev/config-hash"]


def test_the_operator_can_read_its_configuration() -> None:
    config, hashed = config_of(EVERYTHING)
    assert [pool.name for pool in config.node_pools] == ["p5", "cpu"]
    assert (config.node_pools[0].instance_type, config.node_pools[1].machine) == ("p5.48xlarge", "Any")
    assert (config.sagemaker.region, config.tenancy[0].buckets[0].prefixes) == ("us-west-2", ("a/",))
    assert config.storage.s3_endpoint == "http://minio.example:9000"
    assert config_of({**EVERYTHING, "replicas": 1})[1] == hashed
    assert config_of({**EVERYTHING, "nodePools": [{"name": "p5"}]})[1] != hashed


def test_without_pools_there_is_no_configuration() -> None:
    objects = chart.render(IMAGE)
    assert "ConfigMap" not in {each["kind"] for each in objects}
    template = chart.one(objects, "Deployment")["spec"]["template"]
    assert "--config=/etc/muster/config.yaml" not in template["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("name", ["nodePools", "sagemaker", "tenancy", "storage", "disruptions"])
def test_each_part_of_the_configuration_reaches_the_operator(name: str) -> None:
    objects = chart.render({**IMAGE, name: EVERYTHING[name]})
    template = chart.one(objects, "Deployment")["spec"]["template"]
    [container] = template["spec"]["containers"]
    assert "--config=/etc/muster/config.yaml" in container["args"]
    assert {"name": "config", "configMap": {"name": "muster-config"}} in template["spec"]["volumes"]
    assert config_of({**IMAGE, name: EVERYTHING[name]})[0] != OperatorConfig()


def test_pod_groups_are_for_the_queues_that_are_on() -> None:
    def groups(**queues: bool) -> set[str]:
        result = rights.grants(chart.render({**IMAGE, "queues": queues}), ACCOUNT)
        return {grant.group for grant in result if grant.resource == "podgroups"}

    assert groups() == set()
    assert groups(volcano=True) == {"scheduling.volcano.sh"}
    assert groups(coscheduling=True) == {"scheduling.x-k8s.io"}


def test_agents_take_their_python_from_the_operator_s_own_image_unless_told_otherwise() -> None:
    image = {"repository": "registry.example/muster", "tag": "2", "pullPolicy": "Always"}
    [container] = chart.one(chart.render({"image": image}), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--agent-image=registry.example/muster:2" in container["args"]
    assert "--pull-policy=Always" in container["args"]


def test_a_single_replica_may_be_drained() -> None:
    kinds = {each["kind"] for each in chart.render({**IMAGE, "replicas": 1})}
    # A selector would send agents to a standby, too.
    assert "selector" not in chart.one(chart.render(IMAGE), "Service", "muster-collector")["spec"]
    assert "PodDisruptionBudget" not in kinds
    assert "PodDisruptionBudget" in {each["kind"] for each in chart.render(IMAGE)}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "image.repository is empty"),
        ({**IMAGE, "replcas": 2}, "replcas"),
        ({**IMAGE, "namespaces": "a"}, "namespaces"),
        ({**IMAGE, "namespaces": ["A"]}, "namespaces"),
        ({**IMAGE, "collector": {"port": 80}}, "port"),
        ({**IMAGE, "agent": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({**IMAGE, "networkPolicy": {"enabled": "yes"}}, "enabled"),
        ({**IMAGE, "nodePools": [{"instanceType": "p5.48xlarge"}]}, "name"),
        ({**IMAGE, "nodePools": [{"name": "p5", "zone": "same"}]}, "zone"),
        ({**IMAGE, "queues": {"kueue": True}}, "kueue"),
        ({**IMAGE, "webhook": {"enabled": True, "port": 8443}}, "webhook"),
        ({**IMAGE, "webhook": {"enabled": True}, "collector": {"port": 9443}}, "are both 9443"),
        ({**IMAGE, "networkPolicy": {"hostNetworkCIDRs": ["nodes"]}}, "hostNetworkCIDRs"),
        ({**IMAGE, "networkPolicy": {"apiServerCIDRs": ["172.18.0.2"]}}, "apiServerCIDRs"),
        ({**IMAGE, "topologySpreadConstraints": [{"topologyKey": "zone"}]}, "whenUnsatisfiable"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(values: Values, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        chart.render(values)


def test_rights_are_the_verbs_that_muster_uses_and_end_at_the_namespaces() -> None:
    everywhere = rights.grants(chart.render(IMAGE), ACCOUNT)
    some = rights.grants(chart.render({**IMAGE, "namespaces": ["a", "b"]}), ACCOUNT)
    assert not [grant for grant in everywhere if "*" in {grant.verb, grant.group, grant.resource}]
    assert {grant.namespace for grant in everywhere} == {EVERYWHERE, chart.NAMESPACE}
    assert {grant.namespace for grant in some} == {"a", "b", chart.NAMESPACE}
    assert {(each.verb, each.group, each.resource) for each in everywhere} == {
        (each.verb, each.group, each.resource) for each in some
    }
    # Only its users may read a Secret's content: muster can't even read the names of others.
    assert all(
        each.names == ("muster-collector",)
        for each in everywhere
        if each.resource == "secrets" and each.verb != "create"
    )
    # Nor can it redirect another Service's clients.
    assert {each.names for each in everywhere if each.resource == "endpointslices" and each.verb != "create"} == {
        ("muster-collector-ipv4", "muster-collector-ipv6")
    }


def test_a_hook_updates_the_crds_and_nothing_else() -> None:
    objects = chart.render(IMAGE)
    hooks = [each for each in objects if "pre-upgrade" in hook_events(each)]
    assert {each["kind"] for each in hooks} == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"}
    assert all(hook_events(each) == ["pre-install", "pre-upgrade"] for each in hooks)
    names = [
        yaml.safe_load(file.read_text(encoding="utf-8"))["metadata"]["name"] for file in (CHART / "crds").iterdir()
    ]
    granted = rights.grants(objects, f"{chart.NAMESPACE}:muster-crds")
    assert {(each.verb, each.resource, each.names) for each in granted} == {
        (verb, "customresourcedefinitions", tuple(sorted(names))) for verb in ("get", "create", "patch")
    }
    template = chart.one(objects, "Job", "muster-crds")["spec"]["template"]
    assert template["spec"]["containers"][0]["args"] == ["apply-crds"]
    selectors = [each["spec"].get("selector") for each in objects if each["kind"] == "Service"]
    assert not any(selector and selector.items() <= template["metadata"]["labels"].items() for selector in selectors)
    without = chart.render({**IMAGE, "crds": {"apply": False}})
    assert [each for each in without if "pre-upgrade" in hook_events(each)] == []


def test_the_test_of_helm_may_only_look_and_send_a_dry_run() -> None:
    objects = chart.render({**IMAGE, "namespaces": ["a", "b"], "webhook": {"enabled": True}, "shards": 2})
    pod = chart.one(objects, "Pod", "muster-test")
    arguments = pod["spec"]["containers"][0]["args"]
    assert arguments[:3] == ["doctor", "--namespace=a", "--operator-namespace=muster-system"]
    collectors = [each.partition("=")[2] for each in arguments if each.startswith("--collector-url=")]
    for each, suffix in zip(collectors, ("", "-1"), strict=True):
        [container] = chart.one(objects, "Deployment", f"muster{suffix}")["spec"]["template"]["spec"]["containers"]
        assert f"--collector-url={each}" in container["args"]
    # The NetworkPolicy admits this pod as one of a job.
    assert "muster.dev/job-uid" in pod["metadata"]["labels"]
    granted = rights.grants(objects, f"{chart.NAMESPACE}:muster-test")
    changes = [each for each in granted if each.verb not in {"get", "list", "watch"}]
    assert {(each.verb, each.resource, each.namespace) for each in changes} == {
        ("create", "distributedtrainingjobs", "a")
    }
    without = rights.grants(chart.render(IMAGE), f"{chart.NAMESPACE}:muster-test")
    assert {each.verb for each in without} == {"get", "list", "watch"}


def hook_events(each: dict[str, Any]) -> list[str]:
    events: str = each["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    return events.split(",")


def test_each_shard_has_a_deployment_a_lease_and_a_collector_of_its_own() -> None:
    objects = chart.render({**IMAGE, "shards": 2})
    for shard, suffix in enumerate(("", "-1")):
        deployment = chart.one(objects, "Deployment", f"muster{suffix}")
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert f"--shard={shard}/2" in container["args"]
        assert any(f"https://muster-collector{suffix}.{chart.NAMESPACE}.svc" in text for text in container["args"])
        selector = deployment["spec"]["selector"]["matchLabels"]
        assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
        assert selector["muster.dev/shard"] == str(shard)
        assert (
            chart.one(objects, "PodDisruptionBudget", f"muster{suffix}")["spec"]["selector"]["matchLabels"] == selector
        )
        assert chart.one(objects, "Lease", f"muster{suffix}")
        assert chart.one(objects, "Service", f"muster-collector{suffix}")
    names = {name for rule in chart.one(objects, "Role", "muster")["rules"] for name in rule.get("resourceNames", ())}
    collectors = {"muster-collector", "muster-collector-1"}
    slices = {f"{name}-ipv{version}" for name in collectors for version in (4, 6)}
    assert names == {"muster", "muster-1", *collectors, *slices}


def test_the_api_server_asks_about_the_jobs_that_muster_runs() -> None:
    assert "ValidatingWebhookConfiguration" not in {each["kind"] for each in chart.render(IMAGE)}
    objects = chart.render({**IMAGE, "webhook": {"enabled": True}})
    [webhook] = chart.one(objects, "ValidatingWebhookConfiguration")["webhooks"]
    assert (webhook["failurePolicy"], webhook["sideEffects"], webhook["timeoutSeconds"]) == ("Ignore", "None", 3)
    assert "namespaceSelector" not in webhook
    assert chart.one(objects, "Service", "muster-webhook")["spec"]["ports"][0]["targetPort"] == "webhook"
    [some] = chart.one(chart.render(EVERYTHING), "ValidatingWebhookConfiguration")["webhooks"]
    assert some["namespaceSelector"]["matchExpressions"][0]["values"] == ["a", "b"]
    granted = rights.grants(objects, ACCOUNT)
    assert {(each.verb, each.namespace, each.names) for each in granted if "webhook" in each.resource} == {
        ("get", EVERYWHERE, ("muster-muster-system",)),
        ("update", EVERYWHERE, ("muster-muster-system",)),
    }


def test_the_chart_is_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    described: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert described["version"] == described["appVersion"] == project["version"]
