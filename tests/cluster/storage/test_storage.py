"""Jobs whose code, data, snapshots and results are in S3, on a real cluster: containers download and upload them."""

from __future__ import annotations

import datetime as dt
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.authority import Authority
from cluster.reasons import machine
from cluster.reasons.stage import Stage
from cluster.reasons.timeline import condition, pod_of, says, statuses
from cluster.storage.pod_identity import ACCOUNT, AUDIENCE, ROLE
from cluster.storage.pods_s3 import PodsS3, Role
from cluster.storage.served import for_pods
from cluster.storage.stored_jobs import PLACES, RESTRICTED, TRAIN, USER, restricted
from fakes import git_server
from fakes.s3_server import read_objects

KEYS = [f"train/{number:02}.png" for number in range(9)]
TELLS_ITSELF = "import os, told; (told.MODEL / 'm').write_text(told.WORDS)"
TOLD = "import os, pathlib\nMODEL = pathlib.Path(os.environ['SM_MODEL_DIR'])\nWORDS = os.getcwd()\n"
CODE = {"train.py": TELLS_ITSELF, "told.py": TOLD}
COMMAND = ["python3", "train.py"]


@pytest.fixture(autouse=True)
def filled(s3: PodsS3) -> Iterator[None]:
    """Yield a bucket with data and without denied requests."""
    for key in KEYS:
        s3.client.put_object(Bucket="data", Key=key, Body=key.encode())
    yield
    s3.denied.clear()


def test_a_job_has_all_from_s3_goes_on_from_its_snapshots_and_leaves_its_results_there(
    stage: Stage, s3: PodsS3
) -> None:
    files = ("--from-literal=train.py=" + TRAIN, "--from-literal=places.py=" + PLACES)
    stage.jobs.run("create", "configmap", "vit-code", *files)
    stage.apply(
        "vit",
        nodes=2,
        procsPerNode=2,
        command=COMMAND,
        source={"configMap": {"name": "vit-code"}},
        inputs=[{"name": "train", "s3": {"uri": "s3://data/train/", "distribution": "ShardedByS3Key"}}],
        checkpoint={"s3": "s3://data/ckpt"},
        output={"s3": "s3://data/out"},
        template=RESTRICTED,
    )
    stage.until(lambda: all(_said(stage, f"vit-{node}-0").count("has written") == 2 for node in (0, 1)))
    pods = [stage.started_pod("vit", node) for node in (0, 1)]
    fetched = _fetched_by(s3, stage, "vit")
    assert sorted(fetched["0"] + fetched["1"]) == KEYS
    assert abs(len(fetched["0"]) - len(fetched["1"])) <= 1
    assert [_credentials(pod) for pod in pods] == [[], []]
    assert set(s3.roles) == {Role(ROLE, f"system:serviceaccount:{stage.namespace}:{ACCOUNT}", (AUDIENCE,))}
    stage.jobs.patch("vit", suspend=True)
    stage.jobs.wait("vit", "condition=Suspended")
    assert sorted(read_objects(s3.client, "data", "ckpt/")) == [f"ckpt/rank-{rank}.pt" for rank in range(4)]
    stage.jobs.patch("vit", suspend=False)
    stage.completes("vit")
    document = {key: json.loads(value) for key, value in read_objects(s3.client, "data", "out/vit/").items()}
    assert sorted(document) == [f"out/vit/model/rank-{rank}.json" for rank in range(4)]
    ranks = [document[f"out/vit/model/rank-{rank}.json"] for rank in range(4)]
    assert [(rank["host"], rank["user"]) for rank in ranks] == [(f"algo-{node}", USER) for node in (1, 1, 2, 2)]
    # a suspension doesn't change the nodes' shares
    assert [rank["inputs"] for rank in ranks] == [
        [key.removeprefix("train/") for key in fetched[node]] for node in ("0", "0", "1", "1")
    ]
    assert {tuple(rank["snapshots"]) for rank in ranks} == {tuple(f"rank-{rank}.pt" for rank in range(4))}


def test_code_comes_from_wherever_it_is(stage: Stage, s3: PodsS3) -> None:
    s3.client.put_object(Bucket="data", Key="code.tar.gz", Body=_archive())
    sources = {"inline": {"files": CODE}, "s3": {"uri": "s3://data/code.tar.gz"}}
    for kind, source in sources.items():
        stage.apply(
            f"code-{kind}",
            command=COMMAND,
            source={kind: source},
            inputs=[{"name": "train", "s3": {"uri": "s3://data/train/"}}],
            output={"s3": "s3://data/out"},
            template=RESTRICTED,
        )
    for name in ("code-inline", "code-s3"):
        stage.completes(name)
        assert read_objects(s3.client, "data", f"out/{name}/") == {f"out/{name}/model/m": b"/opt/ml/code"}
        stage.started_pod(name)
        assert _fetched_by(s3, stage, name) == {"0": KEYS}


def test_code_comes_from_a_git_host_that_only_its_owners_trust(stage: Stage, s3: PodsS3, tmp_path: Path) -> None:
    authority = Authority(dt.datetime.now(dt.UTC))
    trusted = f"--from-literal=ca.crt={authority.pair.certificate.decode()}"
    stage.jobs.run("create", "configmap", "authority", trusted)
    commit = git_server.commit(git_server.create_repository(tmp_path / "team" / "vision.git"), CODE)
    mount = {"name": "authority", "mountPath": "/authority"}
    trusts = {"name": "muster-download", "env": [{"name": "SSL_CERT_FILE", "value": "/authority/ca.crt"}]}
    template = restricted(
        initContainers=[{**trusts, "volumeMounts": [mount]}],
        volumes=[{"name": "authority", "configMap": {"name": "authority"}}],
    )
    with git_server.git_server(tmp_path, for_pods(authority, tmp_path)) as server:
        stage.apply(
            "code-git",
            command=COMMAND,
            source={"git": {"url": f"{server.url}/team/vision.git", "commit": commit}},
            output={"s3": "s3://data/out"},
            template=template,
        )
        stage.completes("code-git")
    assert read_objects(s3.client, "data", "out/code-git/") == {"out/code-git/model/m": b"/opt/ml/code"}


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "one-object": (
        {"inputs": [{"name": "train", "s3": {"uri": "s3://data/train/"}}]},
        "S3AccessDenied",
        "spec.inputs[0].s3.uri: s3:GetObject on s3://data/train/07.png is denied",
    ),
    "results-before-the-start": (
        {"output": {"s3": "s3://data/out"}},
        "S3AccessDenied",
        "spec.output.s3: s3:PutObject on s3://data/out/",
    ),
}
"""Jobs, and how each fails if one object can't be read and nothing be written below /data/out."""


def test_what_can_not_be_had_is_told_by_its_own_name(stage: Stage, s3: PodsS3) -> None:
    s3.denied |= {("GET", "/data/train/07.png"), ("POST", "/data/out/")}
    for name, (changes, _, _) in REFUSED.items():
        stage.apply(name, template=RESTRICTED, **changes)
    for name, (_, reason, message) in REFUSED.items():
        over = stage.failed(name, pod_of(name, _has_failed), reason)
        assert message in condition(over, "Failed")["message"]


def test_a_deleted_pods_ranks_leave_their_snapshot(stage: Stage, s3: PodsS3) -> None:
    _waiting_with_a_snapshot(stage, "deleted")
    stage.jobs.run("delete", "pod", "deleted-0-0")
    stage.timeline.first(says("deleted", "PodDeleted", "Failed"))
    assert read_objects(s3.client, "data", "deleted/") == {"deleted/1.pt": b"step 10"}


def test_who_keeps_is_there_again_after_a_fall(stage: Stage, s3: PodsS3) -> None:
    pod = _waiting_with_a_snapshot(stage, "falls")
    machine.kill(*machine.init_processes(pod, "muster-upload"))
    stage.jobs.patch("falls", suspend=True)
    stage.jobs.wait("falls", "condition=Suspended")
    assert read_objects(s3.client, "data", "falls/") == {"falls/1.pt": b"step 10"}


def _waiting_with_a_snapshot(stage: Stage, name: str) -> Any:
    """Return the pod of a job whose rank has written a snapshot and would continue for long."""
    script = "import os, time; open(os.environ['MUSTER_CHECKPOINT_DIR'] + '/1.pt', 'w').write('step 10')"
    waits = "print('has written', flush=True); time.sleep(600)"
    stage.apply(name, f"{script}; {waits}", checkpoint={"s3": f"s3://data/{name}"}, template=RESTRICTED)
    stage.until(lambda: "has written" in _said(stage, f"{name}-0-0"))
    return stage.started_pod(name)


def test_results_that_can_not_be_kept_fail_the_job(stage: Stage, s3: PodsS3) -> None:
    s3.denied.add(("PUT", "/data/out/"))
    stage.apply(
        "kept-not",
        "import os; open(os.environ['SM_MODEL_DIR'] + '/m', 'w').write('m')",
        output={"s3": "s3://data/out"},
        template=RESTRICTED,
    )
    over = stage.failed("kept-not", pod_of("kept-not", _trainer_has_ended), "S3AccessDenied")
    assert (
        "spec.output.s3: s3:PutObject on s3://data/out/kept-not/model/m is denied"
        in condition(over, "Failed")["message"]
    )


def _has_failed(pod: Any) -> bool:
    return any(each.get("state", {}).get("terminated", {}).get("exitCode") for each in statuses(pod))


def _trainer_has_ended(pod: Any) -> bool:
    return any(each["name"] == "trainer" and "terminated" in each.get("state", {}) for each in statuses(pod))


def _said(stage: Stage, pod: str) -> str:
    # the container may not exist yet
    phases = {
        each["metadata"]["name"]: each["status"]["phase"]
        for each in stage.kubectl.list(stage.namespace, "pods", "muster.dev/job")
    }
    return stage.kubectl.read_log(stage.namespace, pod, "trainer") if phases.get(pod) == "Running" else ""


def _fetched_by(s3: PodsS3, stage: Stage, name: str) -> dict[str, list[str]]:
    """Return the objects that the first pod of each node has requested, by node."""
    pods = {
        seen.status["podIP"]: seen.object["metadata"]["labels"]["muster.dev/node"]
        for seen in stage.timeline.all(pod_of(name, lambda pod: pod.get("status", {}).get("podIP")))
    }
    result: dict[str, list[str]] = {node: [] for node in pods.values()}
    for asked in s3.asked:
        if asked.address in pods and asked.path.startswith("/data/train/"):
            result[pods[asked.address]].append(asked.path.removeprefix("/data/"))
    return {node: sorted(set(keys)) for node, keys in result.items()}


def _credentials(pod: Any) -> list[str]:
    """Return the parts of a pod's spec that look like credentials; a path to a token doesn't count."""
    spec = pod["spec"]
    containers = [*spec["initContainers"], *spec["containers"]]
    names = [variable["name"] for container in containers for variable in container.get("env", [])]
    kinds = [kind for volume in spec["volumes"] for kind in volume]
    return [name for name in (*names, *kinds) if "KEY" in name or "SECRET" in name or name == "secret"]


def _archive() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as written:
        for name, text in CODE.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            written.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()
