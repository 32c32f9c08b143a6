"""The machines of a job's pods, and their affinity to each other."""

import pytest

from muster.api.config.pools import resolve_pool
from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.spec.node_pool import NamedPool
from muster.render.kubernetes import render
from muster.render.kubernetes.fields import find_job_field
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import get_entries
from muster.render.kubernetes.spec_hash import hash_spec
from unit.render.kubernetes.cluster_jobs import SETTING, UID, cluster_job, pod_spec, rendered

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
LAYER = "topology.k8s.aws/network-node-layer-3"


def keys(kind: str, **spec: JSON) -> list[JSON]:
    """Return the labels by which the job's pods are placed together, or apart."""
    affinity = read_mapping(read_mapping(pod_spec(cluster_job(**spec)).get("affinity")).get(kind))
    terms = get_entries(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    assert all(term["labelSelector"] == {"matchLabels": {"muster.dev/job-uid": UID}} for term in terms)
    return [term["topologyKey"] for term in terms]


@pytest.mark.parametrize(
    ("spec", "together", "apart"),
    [
        ({}, [], []),
        ({"nodePool": {}}, [], [HOST]),
        ({"nodePool": {}, "nodes": 1}, [], []),
        ({"nodePool": {"zone": "Same"}}, [ZONE], [HOST]),
        ({"nodePool": {"zone": "Any", "machine": "Any"}}, [], []),
        ({"nodePool": {"instanceType": "p5.48xlarge"}}, [ZONE], [HOST]),
        ({"nodePool": {"instanceType": "p5.48xlarge", "zone": "Any"}}, [], [HOST]),
        ({"nodePool": {"instanceType": "p5.48xlarge"}, "network": {"efa": "None"}}, [], [HOST]),
        ({"nodePool": {"instanceType": "g5.xlarge"}}, [], [HOST]),
        ({"nodePool": {"zone": "Same", "sameLabels": [LAYER]}}, [ZONE, LAYER], [HOST]),
        ({"resources": {"limits": {"vpc.amazonaws.com/efa": 1}}}, [ZONE], []),
    ],
)
def test_pods_lie_together_and_apart(spec: dict[str, JSON], together: list[JSON], apart: list[JSON]) -> None:
    assert keys("podAffinity", **spec) == together
    assert keys("podAntiAffinity", **spec) == apart


@pytest.mark.parametrize(
    ("spec", "prefers", "requires"),
    [
        ({}, [], []),
        ({"spares": 1}, [(100, HOST)], []),
        ({"spares": 1, "nodes": 1}, [(100, HOST)], []),
        ({"spares": 1, "nodePool": {"machine": "Any"}}, [(100, HOST)], []),
        ({"spares": 1, "nodePool": {}}, [], [HOST]),
        ({"spares": 1, "nodePool": {}, "nodes": 1}, [], [HOST]),
    ],
)
def test_all_pods_of_a_job_with_spares_lie_apart(
    spec: dict[str, JSON], prefers: list[tuple[int, str]], requires: list[JSON]
) -> None:
    for node in range(2):
        affinity = read_mapping(pod_spec(cluster_job(**spec), node).get("affinity"))
        terms = get_entries(
            read_mapping(affinity.get("podAntiAffinity")), "preferredDuringSchedulingIgnoredDuringExecution"
        )
        assert [(term["weight"], read_mapping(term["podAffinityTerm"])["topologyKey"]) for term in terms] == prefers
    assert keys("podAntiAffinity", **spec) == requires


def test_a_pool_s_labels_and_taints_are_the_pods() -> None:
    pool: Fields = {
        "instanceType": "m7i.large",
        "nodeSelector": {"team": "vision", "karpenter.sh/capacity-type": "on-demand"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
    }
    template: Fields = {"spec": {"nodeSelector": {"team": "audio"}, "tolerations": [{"key": "x"}]}}
    result = pod_spec(cluster_job(nodePool=pool, template=template))
    assert result["nodeSelector"] == {
        "node.kubernetes.io/instance-type": "m7i.large",
        "team": "audio",
        "karpenter.sh/capacity-type": "on-demand",
    }
    assert result["tolerations"] == [{"key": "team", "operator": "Exists"}, {"key": "x"}]


def test_the_owner_s_affinity_stands_beside_the_pool_s() -> None:
    theirs: Fields = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
    required: Fields = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [theirs]}}
    result = pod_spec(cluster_job(nodePool={"zone": "Same"}, template={"spec": {"affinity": required}}))
    terms = get_entries(
        read_mapping(read_mapping(result["affinity"])["podAffinity"]), "requiredDuringSchedulingIgnoredDuringExecution"
    )
    assert [term["topologyKey"] for term in terms] == [ZONE, ZONE]
    assert terms[1] == theirs


def test_avoided_nodes_stand_beside_the_owner_s_affinity() -> None:
    theirs: Fields = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    wishes: Fields = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [theirs]}}
    job = cluster_job(template={"spec": {"affinity": wishes}})
    affinity = read_mapping(
        read_mapping(render.render_pod(job, 0, 1, SETTING, ("node-a", "node-b"))["spec"])["affinity"]
    )
    terms = get_entries(read_mapping(affinity["nodeAffinity"]), "preferredDuringSchedulingIgnoredDuringExecution")
    avoided = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["node-a", "node-b"]}
    assert terms == [{"weight": 100, "preference": {"matchExpressions": [avoided]}}, theirs]
    assert hash_spec(job) == hash_spec(cluster_job(template={"spec": {"affinity": wishes}}))


POOLS = (
    NamedPool(name="p5", instance_type="p5.48xlarge", zone="Same", same_labels=(LAYER,)),
    NamedPool(name="cpu", node_selector={"pool": "cpu"}, machine="Any"),
)


def test_a_named_pool_is_as_good_as_its_words() -> None:
    named = resolve_pool(cluster_job(nodePool={"name": "p5"}), POOLS)
    words = cluster_job(nodePool={"instanceType": "p5.48xlarge", "zone": "Same", "sameLabels": [LAYER]})
    assert pod_spec(named) == pod_spec(words)
    assert resolve_pool(cluster_job(), POOLS) == cluster_job()
    assert resolve_pool(words, POOLS) == words


def test_pods_made_from_another_configuration_are_outdated() -> None:
    job = cluster_job(nodePool={"name": "cpu"})
    other = (NamedPool(name="cpu", node_selector={"pool": "cpus"}, machine="Any"),)
    assert hash_spec(resolve_pool(job, POOLS)) != hash_spec(resolve_pool(job, other))


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        (POOLS, 'spec.nodePool.name: found "p6"; the operator\'s configuration has p5, cpu'),
        ((), "the operator's configuration has no node pools: describe the pool here"),
        (tuple(NamedPool(name=f"p{n}") for n in range(10, 22)), "p10, .* p19 and 2 more"),
    ],
)
def test_the_message_about_an_unknown_pool_lists_the_pools(pools: tuple[NamedPool, ...], words: str) -> None:
    with pytest.raises(InvalidResource, match=words):
        resolve_pool(cluster_job(nodePool={"name": "p6"}), pools)


@pytest.mark.parametrize(
    ("pool", "field", "place"),
    [
        ({"tolerations": [{"key": "a b"}]}, "spec.tolerations[0].key", "spec.nodePool.tolerations[0].key"),
        ({"tolerations": [{"key": "a b"}]}, "spec.tolerations[1].key", "spec.template.spec.tolerations[1].key"),
        ({"nodeSelector": {"a": "b c"}}, "spec.nodeSelector", "spec.nodePool.nodeSelector"),
        ({}, "spec.nodeSelector", "spec.template.spec.nodeSelector"),
    ],
)
def test_what_the_api_server_finds_wrong_is_found_in_the_pool(pool: Fields, field: str, place: str) -> None:
    job = cluster_job(nodePool=pool)
    assert find_job_field(field, rendered(job), job) == place


def test_a_named_pool_s_mistake_is_the_operator_s() -> None:
    pools = (NamedPool(name="bad", tolerations=({"key": "a b"},)),)
    job = resolve_pool(cluster_job(nodePool={"name": "bad"}), pools)
    assert (
        find_job_field("spec.tolerations[0].key", rendered(job), job)
        == "the operator's node pool bad.tolerations[0].key"
    )
