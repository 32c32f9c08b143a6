"""Names, labels, owners: the properties that make an object belong to a job, and a job's objects other than pods."""

import base64
import re

import pytest

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Metadata
from muster.objects.kubernetes.names import build_agent_name, build_children_name, build_pod_name
from muster.render.agent_plan import render_plan
from muster.render.kubernetes.devices import resolve_procs_per_node
from muster.render.kubernetes.render import (
    render_agent_config_map,
    render_config_map,
    render_pod_selector,
    render_service,
)
from muster.render.kubernetes.spec_hash import hash_spec
from muster_worker.contract import wire
from muster_worker.contract.schema import Plan
from unit.render.kubernetes.cluster_jobs import SETTING, UID, cluster_job, labels, pod_spec, rendered, with_trainer

OWNER = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "DistributedTrainingJob",
    "name": "vit",
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": False,
}


def test_every_child_belongs_to_the_job() -> None:
    job = cluster_job(procsPerNode=1)
    plan = render_plan(job, SETTING.collector_url, "PEM")
    for child in (rendered(job), render_service(job), render_config_map(job, plan)):
        metadata = read_mapping(child["metadata"])
        assert metadata["ownerReferences"] == [OWNER]
        assert metadata["namespace"] == "team"
        assert labels(child)["muster.dev/job-uid"] == UID


def test_names_and_labels_are_within_kubernetes_limits() -> None:
    job = cluster_job(nodes=10000)
    job = job.model_copy(update={"metadata": Metadata(name="a" * 40, namespace="b" * 63, uid=UID)})
    result = rendered(job, 9999, 99999)
    metadata, spec = read_mapping(result["metadata"]), read_mapping(result["spec"])
    for name in (metadata["name"], spec["hostname"], spec["subdomain"]):
        assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", str(name))
    for value in labels(result).values():
        assert re.fullmatch(r"[a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?", str(value))
    assert metadata["name"] == build_pod_name("a" * 40, 9999, 99999)
    assert spec["subdomain"] == build_children_name("a" * 40) == read_mapping(render_service(job)["metadata"])["name"]


def test_no_two_pods_share_a_name() -> None:
    numbers = range(12)
    names = {
        build_pod_name(job, node, replacement)
        for job in ("a", "a-1", "a-1-1")
        for node in numbers
        for replacement in numbers
    }
    assert len(names) == 3 * 12 * 12


def test_the_service_names_nodes_that_are_not_ready() -> None:
    spec = read_mapping(render_service(cluster_job())["spec"])
    assert spec == {"clusterIP": "None", "ipFamilyPolicy": "SingleStack", "publishNotReadyAddresses": True}
    assert render_pod_selector(cluster_job()) == {"muster.dev/job-uid": UID}


def test_the_config_map_contains_the_plan() -> None:
    plan = render_plan(cluster_job(procsPerNode=4), SETTING.collector_url, "PEM")
    result = render_config_map(cluster_job(), plan)
    assert wire.decode(Plan, str(read_mapping(result["data"])["plan.json"]).encode()) == plan


def test_all_jobs_of_a_namespace_share_the_agents_config_map() -> None:
    result = render_agent_config_map(cluster_job(), build_agent_name(b"agent"), b"agent")
    assert base64.b64decode(str(read_mapping(result["binaryData"])["agent.pyz"])) == b"agent"
    assert result["immutable"] is True
    metadata = read_mapping(result["metadata"])
    assert (metadata["namespace"], metadata["ownerReferences"]) == ("team", [OWNER])
    assert metadata["name"] == build_agent_name(b"agent") != build_agent_name(b"new agent")
    assert build_agent_name(b"agent", "-1") == f"{build_agent_name(b'agent')}-1"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 1),
        ({"cpu": 8}, 1),
        ({"nvidia.com/gpu": 8}, 8),
        ({"nvidia.com/gpu": "4"}, 4),
        ({"nvidia.com/gpu": 0}, 1),
        ({"amd.com/gpu": 2}, 2),
        ({"aws.amazon.com/neuroncore": 32}, 32),
    ],
)
def test_auto_is_one_rank_a_device(limits: JSON, expected: int) -> None:
    assert resolve_procs_per_node(cluster_job(resources={"limits": limits})).spec.procs_per_node == expected


def test_the_template_s_devices_count_too() -> None:
    job = cluster_job(template=with_trainer(resources={"limits": {"nvidia.com/gpu": 2}}))
    assert resolve_procs_per_node(job).spec.procs_per_node == 2


def test_a_number_that_is_set_stays() -> None:
    job = cluster_job(procsPerNode=3, resources={"limits": {"nvidia.com/gpu": 8}})
    assert resolve_procs_per_node(job).spec.procs_per_node == 3


def test_nodes_with_different_devices_need_a_number() -> None:
    other = with_trainer(resources={"limits": {"nvidia.com/gpu": 4}})
    job = cluster_job(
        nodes=4, resources={"limits": {"nvidia.com/gpu": 8}}, nodeOverrides=[{"nodes": "2-3", "template": other}]
    )
    said = r"spec\.procsPerNode: found Auto, and node 0 has devices for 8 ranks, node 2 for 4; set procsPerNode"
    with pytest.raises(InvalidResource, match=said):
        resolve_procs_per_node(job)


def test_devices_are_counted_in_whole_numbers() -> None:
    with pytest.raises(InvalidResource, match=r'"500m" as limit of nvidia\.com/gpu'):
        resolve_procs_per_node(cluster_job(resources={"limits": {"nvidia.com/gpu": "500m"}}))


def test_the_spec_s_hash_is_the_same_on_every_machine() -> None:
    assert hash_spec(cluster_job()) == "65430b6d23135339"


@pytest.mark.parametrize(
    "change",
    [
        {"suspend": True},
        {"startupTimeoutSeconds": 5},
        {"activeDeadlineSeconds": 5},
        {"cleanPodPolicy": "All"},
        {"env": []},
        {"procsPerNode": "Auto"},
        {"procsPerNode": 1},  # the value of Auto here
    ],
)
def test_what_does_not_shape_pods_leaves_the_hash(change: dict[str, JSON]) -> None:
    assert hash_spec(cluster_job(**change)) == hash_spec(cluster_job())


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": 3},
        {"procsPerNode": 2},
        {"image": "other"},
        {"env": [{"name": "A", "value": "1"}]},
        {"template": {"spec": {"hostNetwork": True}}},
        {"nodeOverrides": [{"nodes": "1", "template": {}}]},
        {"hyperparameters": {"lr": 1}},
        {"metrics": [{"name": "loss", "regex": "(.)"}]},
        {"checkpoint": {}},
    ],
)
def test_what_shapes_pods_or_their_plan_changes_the_hash(change: dict[str, JSON]) -> None:
    assert hash_spec(cluster_job(**change)) != hash_spec(cluster_job())


def test_a_pod_carries_the_hash() -> None:
    metadata = read_mapping(rendered(cluster_job())["metadata"])
    assert read_mapping(metadata["annotations"])["muster.dev/spec-hash"] == hash_spec(cluster_job())


def test_a_template_s_volumes_do_not_touch_the_job_s_own_object() -> None:
    job = cluster_job(template={"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}})
    before = job.model_dump_json()
    pod_spec(job)
    assert job.model_dump_json() == before
