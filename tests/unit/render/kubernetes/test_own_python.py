"""The agent's own Python: its parts of the pod, and the priority of the owner's settings."""

import sys
import sysconfig
from dataclasses import replace

import pytest

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.cli.explain.explanations import explain_node
from muster.cli.explain.launch_preview import preview_launch
from muster.render.agent_plan import render_plan
from muster.render.kubernetes import own_python
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_patch import get_entries
from muster.render.kubernetes.render import render_pod
from muster_dev import own_python as maker
from unit.render.kubernetes.cluster_jobs import (
    SETTING,
    cluster_job,
    mounts,
    pod_spec,
    rendered,
    trainer,
    volumes,
    with_trainer,
)

BROUGHT: Fields = {"inject": "InitContainer"}
PYTHON = "/muster-python/bin/python3"
RESTRICTED: Fields = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
    "runAsNonRoot": True,
}


def init_containers(**spec: JSON) -> list[Fields]:
    return get_entries(pod_spec(cluster_job(agent=BROUGHT, **spec)), "initContainers")


def in_pod(**fields: JSON) -> Fields:
    return {"spec": fields}


def test_without_it_the_image_s_python_runs_the_agent() -> None:
    job = cluster_job()
    command = trainer(job)["command"]
    assert isinstance(command, list)
    assert command[0] == "python3"
    assert "initContainers" not in pod_spec(job)
    assert "muster-python" not in volumes(job)


def test_an_init_container_copies_it_and_the_agent_runs_on_it() -> None:
    job = cluster_job(agent=BROUGHT)
    assert get_entries(pod_spec(job), "initContainers") == [
        {
            "name": "muster-python",
            "image": "registry.example/muster:1",
            "imagePullPolicy": "Always",
            "command": [PYTHON, "-I", "/muster-python/copy.py", "/muster-python-copy"],
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": RESTRICTED,
            "volumeMounts": [{"name": "muster-python", "mountPath": "/muster-python-copy"}],
        }
    ]
    assert volumes(job)["muster-python"] == {"name": "muster-python", "emptyDir": {}}
    assert mounts(job)["/muster-python"] == {"name": "muster-python", "mountPath": "/muster-python", "readOnly": True}
    command, usual = trainer(job)["command"], trainer(cluster_job())["command"]
    assert isinstance(command, list)
    assert isinstance(usual, list)
    assert command == [PYTHON, *usual[1:]]


def test_nothing_of_it_reaches_the_ranks_environment() -> None:
    assert trainer(cluster_job(agent=BROUGHT)).get("env") == trainer(cluster_job()).get("env")


@pytest.mark.parametrize(
    ("resources", "same"),
    [
        ({}, {}),
        ({"limits": {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 8}}, {"limits": {"cpu": 8, "memory": "64Gi"}}),
        ({"requests": {"cpu": "500m"}, "limits": {"nvidia.com/gpu": 1}}, {"requests": {"cpu": "500m"}}),
        ({"limits": {"vpc.amazonaws.com/efa": 4, "hugepages-2Mi": "5120Mi"}}, {}),
        ({"limits": {"ephemeral-storage": "1Gi"}}, {"limits": {"ephemeral-storage": "1Gi"}}),
    ],
    ids=str,
)
def test_it_asks_for_what_the_ranks_container_asks_for_and_for_no_device(resources: Fields, same: Fields) -> None:
    for spec in ({"resources": resources}, {"template": with_trainer(resources=resources)}):
        [container] = init_containers(**spec)
        assert read_mapping(container.get("resources")) == same


def test_memory_that_muster_asks_for_because_of_huge_pages_is_asked_for_here_too() -> None:
    [container] = init_containers(nodePool={"instanceType": "p5.48xlarge"})
    assert container["resources"] == {"requests": {"memory": "8000Mi"}}


@pytest.mark.parametrize(
    ("context", "says_not_root"),
    [({}, True), ({"runAsUser": 1000}, True), ({"runAsNonRoot": True}, True), ({"runAsUser": 0}, False)],
    ids=str,
)
def test_it_runs_as_whom_the_pod_runs_as(context: Fields, *, says_not_root: bool) -> None:
    [container] = init_containers(template=in_pod(securityContext=context))
    result = read_mapping(container["securityContext"])
    assert result.get("runAsNonRoot", False) is says_not_root
    assert "runAsUser" not in result


def test_it_stands_before_the_owner_s_own_and_a_sidecar_s() -> None:
    own: list[JSON] = [{"name": "fetch", "image": "a"}, {"name": "proxy", "image": "b", "restartPolicy": "Always"}]
    result = init_containers(template=in_pod(initContainers=own))
    assert [container["name"] for container in result] == ["muster-python", "fetch", "proxy"]
    assert result[1:] == own


def test_the_owner_says_more_of_it_or_otherwise() -> None:
    own: list[JSON] = [
        {"name": "muster-python", "image": "mirror.example/muster:1", "resources": {"limits": {"cpu": 1}}}
    ]
    [container] = init_containers(
        resources={"limits": {"cpu": 8, "memory": "1Gi"}}, template=in_pod(initContainers=own)
    )
    assert container["image"] == "mirror.example/muster:1"
    assert container["resources"] == {"limits": {"cpu": 1, "memory": "1Gi"}}
    assert read_mapping(container["securityContext"]) == RESTRICTED


def test_an_operator_that_does_not_know_its_image_says_so() -> None:
    with pytest.raises(NotRenderable, match=r"spec\.agent\.inject .*--agent-image") as refused:
        render_pod(cluster_job(agent=BROUGHT), 0, 0, replace(SETTING, agent_image=""))
    assert refused.value.problem.reason == "AgentImageNotSet"
    assert render_pod(cluster_job(), 0, 0, replace(SETTING, agent_image="")) == rendered(cluster_job())


def test_explain_says_who_asks_for_it_and_render_which_python_starts_the_ranks() -> None:
    job = cluster_job(agent=BROUGHT, procsPerNode=2)
    result = {each.setting: each for each in explain_node(job, 0)}
    image = result["spec.initContainers[muster-python].image"]
    assert (image.value, image.source) == ("OPERATOR_IMAGE", "spec.agent.inject")
    assert result["MUSTER_PYTHON"].value == PYTHON
    seen = preview_launch(job, render_plan(job, "https://collector", "authority"), 0)
    assert seen.command[seen.command.index("--no_python") + 1] == PYTHON


def test_it_is_made_for_the_place_where_pods_mount_it() -> None:
    assert own_python.PYTHON_FOLDER == maker.INSTALL_PATH


def test_the_maker_finds_the_extension_modules_of_a_moved_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sysconfig.get_config_vars(), "DESTSHARED", "/where/it/was/built")
    assert maker.find_modules()["_ctypes"].is_file()
    monkeypatch.delitem(sys.modules, "_ctypes", raising=False)
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    with pytest.raises(maker.BuildError, match=r"has no _ctypes in /nowhere .*/where/it/was/built"):
        maker.find_modules()
