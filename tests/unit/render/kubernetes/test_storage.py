"""The containers that download and upload a job's files in its pods, and the priority of the owner's settings."""

import json

import pytest

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.cli.explain.explanations import explain_node
from muster.render.agent_plan import render_plan
from muster.render.kubernetes import fields
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_patch import get_entries
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.kubernetes.render import render_config_map, render_pod
from muster.render.storage.storage_plan import decode_plan, make_storage_plan
from unit.render.kubernetes.cluster_jobs import (
    cluster_job,
    mounts,
    pod_spec,
    rendered,
    trainer,
    volumes,
    with_trainer,
)

SHARD: JSON = {"name": "train", "s3": {"uri": "s3://data/train", "distribution": "ShardedByS3Key"}}
ALL: Fields = {
    "inputs": [SHARD],
    "source": {"configMap": {"name": "code"}},
    "checkpoint": {"s3": "s3://data/ckpt"},
    "output": {"s3": "s3://data/out"},
}


def init_containers(**spec: JSON) -> dict[str, Fields]:
    return {str(one["name"]): one for one in get_entries(pod_spec(cluster_job(**spec)), "initContainers")}


def test_a_job_without_any_of_it_has_no_more_in_its_pods() -> None:
    assert "initContainers" not in pod_spec(cluster_job())
    assert make_storage_plan(cluster_job()) is None
    assert "muster-data" not in volumes(cluster_job())


def test_ranks_find_what_was_brought() -> None:
    job = cluster_job(**ALL)
    result = {path: mount.get("subPath") for path, mount in mounts(job).items() if mount["name"] == "muster-data"}
    assert result == {
        "/opt/ml/input/data/train": "input/train",
        "/opt/ml/checkpoints": "checkpoints",
        "/opt/ml/model": "model",
        "/opt/ml/output": "output",
        "/opt/ml/code": "code",
        "/muster-sync": "sync",
    }
    assert mounts(job)["/opt/ml/input/data/train"]["readOnly"] is True
    assert trainer(job)["workingDir"] == "/opt/ml/code"
    command = trainer(job)["command"]
    assert isinstance(command, list)
    assert command[-2:] == ["--sync", "/muster-sync/socket"]


def test_one_container_brings_and_ends_and_one_keeps_beside_the_ranks() -> None:
    result = init_containers(**ALL)
    assert list(result) == ["muster-download", "muster-upload"]
    shared = ["--plan", "/muster-storage/storage.json", "--root", "/muster-data"]
    brings = ["muster", "storage", "download", *shared, "--node", "0", "--config-map", "/muster-source"]
    assert result["muster-download"]["command"] == brings
    assert "restartPolicy" not in result["muster-download"]
    keeps = ["muster", "storage", "upload", *shared, "--socket", "/muster-data/sync/socket"]
    assert result["muster-upload"]["command"] == keeps
    assert result["muster-upload"]["restartPolicy"] == "Always"
    for one in result.values():
        assert (one["image"], one["imagePullPolicy"]) == ("registry.example/muster:1", "Always")
        # they don't get the agent's token
        assert "muster" not in {mount["name"] for mount in get_entries(one, "volumeMounts")}


def test_read_only_data_needs_no_upload_container() -> None:
    assert list(init_containers(inputs=[SHARD])) == ["muster-download"]
    assert list(init_containers(source={"inline": {"files": {"a.py": ""}}})) == ["muster-download"]
    assert "--sync" not in json.dumps(trainer(cluster_job(inputs=[SHARD])))


def test_each_node_gets_its_rank() -> None:
    job = cluster_job(inputs=[SHARD])
    (one,) = get_entries(pod_spec(job, node=1), "initContainers")
    assert json.dumps(one["command"]).endswith('"--node", "1"]')


def test_the_plan_travels_in_the_jobs_config_map_and_comes_back_as_it_was() -> None:
    inline: JSON = {"inline": {"files": {"a.py": "print('ä')\n"}}}
    written: Fields = {**ALL, "source": inline, "procsPerNode": 1}
    job = cluster_job(**written)
    data = read_mapping(render_config_map(job, render_plan(job, "https://a", "CA"))["data"])
    assert decode_plan(str(data["storage.json"]).encode()) == make_storage_plan(job)
    assert "storage.json" not in read_mapping(
        render_config_map(cluster_job(procsPerNode=1), render_plan(cluster_job(procsPerNode=1), "https://a", "CA"))[
            "data"
        ]
    )


def test_no_credentials_stand_in_the_pod() -> None:
    assert "AWS" not in json.dumps(rendered(cluster_job(**ALL)))


def test_the_owners_variables_for_s3_and_the_operators_service_reach_them() -> None:
    pod_settings = PodSettings("a", "https://a", "agent", storage_image="i", s3_endpoint="http://minio:9000")
    key: JSON = {"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "k"}}}
    job = cluster_job(**ALL, env=[key, {"name": "LR", "value": "1"}])
    for one in get_entries(read_mapping(render_pod(job, 0, 0, pod_settings)["spec"]), "initContainers"):
        assert one["env"] == [{"name": "AWS_ENDPOINT_URL_S3", "value": "http://minio:9000"}, key]
    own: JSON = {"name": "AWS_ENDPOINT_URL_S3", "value": "http://mine:9000"}
    job = cluster_job(**ALL, env=[own])
    for one in get_entries(read_mapping(render_pod(job, 0, 0, pod_settings)["spec"]), "initContainers"):
        assert one["env"] == [own]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({}, {"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]}}),
        ({"spec": {"securityContext": {"runAsNonRoot": True}}}, {"runAsNonRoot": True}),
        ({"spec": {"securityContext": {"runAsUser": 1000, "runAsGroup": 7}}}, {"runAsUser": 1000, "runAsGroup": 7}),
        (with_trainer(securityContext={"runAsUser": 7}), {"runAsUser": 7}),
    ],
)
def test_they_may_read_what_the_ranks_write_and_are_as_restricted(template: Fields, expected: Fields) -> None:
    always: Fields = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for one in init_containers(**ALL, template=template).values():
        assert one["securityContext"] == {**always, **expected}


def test_what_brings_asks_for_no_more_than_the_ranks_and_a_guaranteed_pod_stays_so() -> None:
    result = init_containers(**ALL, resources={"limits": {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": 1}})
    assert result["muster-download"]["resources"] == {"limits": {"cpu": 4, "memory": "8Gi"}}
    assert result["muster-upload"]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "1Gi"},
    }
    assert init_containers(**ALL)["muster-upload"]["resources"] == {"requests": {"cpu": "100m", "memory": "512Mi"}}


def test_the_owners_template_wins() -> None:
    own: JSON = [{"name": "muster-upload", "image": "mirror/muster:1", "resources": {"requests": {"cpu": "2"}}}]
    template: Fields = {"spec": {"initContainers": own, "containers": [{"name": "trainer", "workingDir": "/src"}]}}
    keeps = init_containers(**ALL, template=template)["muster-upload"]
    assert keeps["image"] == "mirror/muster:1"
    assert read_mapping(read_mapping(keeps["resources"])["requests"]) == {"cpu": "2", "memory": "512Mi"}
    assert trainer(cluster_job(**ALL, template=template))["workingDir"] == "/src"


def test_a_folder_is_mounted_once() -> None:
    template = with_trainer(volumeMounts=[{"name": "x", "mountPath": "/opt/ml/checkpoints/"}])
    with pytest.raises(NotRenderable, match=r"/opt/ml/checkpoints is mounted by spec\.checkpoint\.s3"):
        pod_spec(cluster_job(**ALL, template=template))


def test_without_the_operators_image_downloads_are_refused() -> None:
    with pytest.raises(NotRenderable, match=r"spec\.inputs\[0\]\.s3 .*--storage-image") as refused:
        render_pod(cluster_job(**ALL), 0, 0, PodSettings("a", "https://a", "agent", agent_image="i"))
    assert refused.value.problem.reason == "StorageImageNotSet"


def test_every_setting_is_explained() -> None:
    result = explain_node(cluster_job(**ALL, procsPerNode=1), 0)
    sources = {(one.setting.split(".")[1], one.source) for one in result if "initContainers" in one.setting}
    assert sources == {
        ("initContainers[muster-download]", "spec.inputs[0].s3"),
        ("initContainers[muster-upload]", "spec.checkpoint.s3"),
    }
    assert ("spec.source", "/opt/ml/code") in {(one.source, one.value) for one in result}


def test_what_the_api_server_refuses_of_it_is_the_ranks_resources() -> None:
    job = cluster_job(**ALL, resources={"limits": {"cpu": 4}})
    at = fields.find_job_field("spec.initContainers[0].resources.limits[cpu]", rendered(job), job)
    assert at == "spec.resources.limits[cpu]"


def test_a_git_token_reaches_the_container_that_fetches_the_code_and_no_other() -> None:
    git: Fields = {**GIT, "secretKeyRef": {"name": "git-token", "key": "token"}}
    asked: Fields = {**ALL, "procsPerNode": 1, "source": {"git": git}}
    job = cluster_job(**asked)
    variable = {"name": "MUSTER_GIT_TOKEN", "valueFrom": {"secretKeyRef": {"name": "git-token", "key": "token"}}}
    whole = pod_spec(job)
    (bring,) = (one for one in get_entries(whole, "initContainers") if one["name"] == "muster-download")
    assert variable in get_entries(bring, "env")
    assert json.dumps(whole).count("git-token") == 1
    written = json.dumps(render_config_map(job, render_plan(job, "https://collector", "authority")))
    assert "git-token" not in written
    plan = make_storage_plan(job)
    assert plan is not None
    assert plan.code is not None
    assert plan.code.git is not None
    assert plan.code.git.username == "x-access-token"


def test_a_repository_without_a_token_is_read_without_one() -> None:
    job = cluster_job(source={"git": dict(GIT)})
    assert "MUSTER_GIT_TOKEN" not in json.dumps(pod_spec(job))


GIT: Fields = {"url": "https://git.example/code.git", "commit": "0" * 40}
