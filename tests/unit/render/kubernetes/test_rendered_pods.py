"""A node's pod: muster's fields, and the priority of the owner's settings."""
# ruff: noqa: S108 - a pod's folders, not this machine's

import pytest

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_patch import get_entries
from unit.render.kubernetes.cluster_jobs import cluster_job, mounts, pod_spec, rendered, trainer, volumes, with_trainer

CLAIM: Fields = {"persistentVolumeClaim": {"claimName": "data"}}


def mounted_by_owner(path: str) -> Fields:
    template = with_trainer(volumeMounts=[{"name": "mine", "mountPath": path}])
    return {"spec": {**read_mapping(template["spec"]), "volumes": [{"name": "mine", **CLAIM}]}}


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/", "/opt/ml/model", "/opt/ml/checkpoints", "/opt/ml/input"])
def test_what_the_owner_mounts_is_mounted_once(path: str) -> None:
    job = cluster_job(template=mounted_by_owner(path))
    paths = [str(mount["mountPath"]).rstrip("/") for mount in get_entries(trainer(job), "volumeMounts")]
    assert len(paths) == len(set(paths))
    assert mounts(job)[path] == {"name": "mine", "mountPath": path}


def test_a_folder_around_ours_holds_all_that_is_in_it() -> None:
    job = cluster_job(template=mounted_by_owner("/dev"))
    assert "/dev/shm" not in mounts(job)
    assert "muster-shm" not in volumes(job)


def test_scripts_find_their_folders_but_no_mount_hides_what_the_image_has_beside_them() -> None:
    result = mounts(cluster_job())
    assert {path for path in result if str(path).startswith("/opt/ml")} == {
        "/opt/ml/input",
        "/opt/ml/model",
        "/opt/ml/output",
        "/opt/ml/checkpoints",
    }


def test_data_that_the_job_names_is_where_scripts_look_for_it() -> None:
    job = cluster_job(
        inputs=[{"name": "train", "volume": CLAIM}, {"name": "Val_1", "volume": {"hostPath": {"path": "/d"}}}],
        checkpoint={"volume": {"nfs": {"server": "s", "path": "/c"}}},
        output={"volume": CLAIM},
    )
    result = mounts(job)
    assert result["/opt/ml/input/data/train"]["readOnly"] is True
    assert result["/opt/ml/model"]["subPath"] == "vit/model"
    assert result["/opt/ml/output"]["subPath"] == "vit/output"
    assert volumes(job)["muster-checkpoint"]["nfs"] == {"server": "s", "path": "/c"}
    assert volumes(job)["muster-input-1"]["hostPath"] == {"path": "/d", "type": "Directory"}
    assert result["/opt/ml/input"]["name"] == "muster-ml"


def test_two_volumes_for_one_folder_are_refused() -> None:
    job = cluster_job(checkpoint={"volume": CLAIM}, template=mounted_by_owner("/opt/ml/checkpoints/"))
    with pytest.raises(
        NotRenderable, match=r"/opt/ml/checkpoints is mounted by spec.checkpoint.volume and by"
    ) as found:
        rendered(job)
    assert found.value.problem.reason == "MountedTwice"


def test_a_read_only_root_gets_a_writable_tmp() -> None:
    read_only = with_trainer(securityContext={"readOnlyRootFilesystem": True})
    assert mounts(cluster_job(template=read_only))["/tmp"] == {"name": "muster-tmp", "mountPath": "/tmp"}
    assert "/tmp" not in mounts(cluster_job())


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({}, None),
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, "Default"),
    ],
)
def test_names_are_found_from_the_host_s_network_too(spec: Fields, policy: JSON) -> None:
    assert pod_spec(cluster_job(template={"spec": spec})).get("dnsPolicy") == policy


def test_the_owner_s_word_counts_more_than_a_default() -> None:
    annotations: Fields = {"karpenter.sh/do-not-disrupt": "false", "team": "x"}
    template: Fields = {
        "metadata": {"annotations": annotations, "labels": {"team": "x"}},
        "spec": {"automountServiceAccountToken": True, "enableServiceLinks": True},
    }
    job = cluster_job(template=template)
    metadata = read_mapping(rendered(job)["metadata"])
    assert read_mapping(metadata["annotations"])["karpenter.sh/do-not-disrupt"] == "false"
    assert read_mapping(metadata["labels"])["team"] == "x"
    assert pod_spec(job)["automountServiceAccountToken"] is True
    assert pod_spec(job)["enableServiceLinks"] is True


def test_a_default_can_be_taken_away() -> None:
    name = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    job = cluster_job(template={"metadata": {"annotations": {name: None}}})
    assert name not in read_mapping(read_mapping(rendered(job)["metadata"])["annotations"])


def test_each_layer_counts_more_than_the_one_before() -> None:
    job = cluster_job(
        env=[{"name": "A", "value": "spec"}, {"name": "B", "value": "spec"}],
        resources={"limits": {"nvidia.com/gpu": 8, "memory": "1Gi"}},
        template=with_trainer(env=[{"name": "B", "value": "template"}], resources={"limits": {"memory": "2Gi"}}),
        nodeOverrides=[{"nodes": "1", "template": with_trainer(image="other", env=[{"name": "A", "value": "node"}])}],
    )
    assert trainer(job, 0)["image"] == "pytorch/pytorch:2.8.0"
    assert trainer(job, 0)["env"] == [{"name": "A", "value": "spec"}, {"name": "B", "value": "template"}]
    assert trainer(job, 0)["resources"] == {"limits": {"nvidia.com/gpu": 8, "memory": "2Gi"}}
    assert trainer(job, 1)["image"] == "other"
    assert trainer(job, 1)["env"] == [{"name": "A", "value": "node"}, {"name": "B", "value": "template"}]


def test_sidecars_stay_and_the_ranks_container_is_the_first() -> None:
    sidecar: Fields = {"name": "logs", "image": "l", "restartPolicy": "Always", "command": ["a"], "args": ["b", "b"]}
    other: Fields = {"name": "metrics", "image": "m"}
    job = cluster_job(template={"spec": {"initContainers": [sidecar], "containers": [other]}})
    assert pod_spec(job)["initContainers"] == [sidecar]
    assert [container["name"] for container in get_entries(pod_spec(job), "containers")] == ["trainer", "metrics"]
    assert get_entries(pod_spec(job), "containers")[1] == other


@pytest.mark.parametrize(("given", "expected"), [({}, "25"), ({"terminationGracePeriodSeconds": 120}, "115"),
                                                  ({"terminationGracePeriodSeconds": 3}, "0")])  # fmt: skip
def test_the_agent_ends_its_ranks_before_kubernetes_ends_it(given: Fields, expected: str) -> None:
    command = trainer(cluster_job(template={"spec": given}))["command"]
    assert isinstance(command, list)
    assert command[-2:] == ["--grace-seconds", expected]


def test_the_agent_s_termination_messages_go_where_kubernetes_reads_them() -> None:
    command = trainer(cluster_job(template=with_trainer(terminationMessagePath="/tmp/end")))["command"]
    assert isinstance(command, list)
    assert command[command.index("--termination-log") + 1] == "/tmp/end"


def test_the_image_may_stand_in_the_template() -> None:
    job = cluster_job(image=None, template=with_trainer(image="mine"))
    assert trainer(job)["image"] == "mine"


def test_a_job_without_an_image_says_what_to_set() -> None:
    with pytest.raises(NotRenderable, match=r"set spec\.image") as found:
        rendered(cluster_job(image=None))
    assert found.value.problem.reason == "ImageNotSet"


def test_the_owner_s_search_domains_come_first() -> None:
    job = cluster_job(template={"spec": {"dnsConfig": {"searches": ["corp.example"], "options": [{"name": "ndots"}]}}})
    assert pod_spec(job)["dnsConfig"] == {
        "searches": ["corp.example", "vit-muster.team.svc.cluster.local"],
        "options": [{"name": "ndots"}],
    }
