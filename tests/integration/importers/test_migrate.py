"""`muster migrate` against an API server that knows some kinds of other operators."""

from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_client import api_client
from muster.api.document import JSON
from muster_dev.golden_manifests import load_folder
from support.muster_process import run_with_kubeconfig


def load_item(folder: str, name: str, namespace: str) -> JSON:
    value = load_folder(folder)[name][0].value
    assert isinstance(value, dict)
    metadata = value["metadata"]
    assert isinstance(metadata, dict)
    return {**value, "metadata": {**metadata, "namespace": namespace} if namespace else metadata}


LISTS: dict[str, list[JSON]] = {
    "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs": [load_item("manifests", "pytorch_live", "team-a")],
    "/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs": [load_item("manifests", "mpi_pi", "team-a")],
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs": [
        load_item("manifests", "train_torch", "team-a"),
        load_item("manifests", "train_deepspeed", "team-a"),
    ],
    "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes": [load_item("runtimes", "torch_distributed", "")],
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainingruntimes": [],
    "/apis/batch.volcano.sh/v1alpha1/jobs": [load_item("manifests", "volcano_pytorch", "team-b")],
}


async def answer(request: web.Request) -> web.Response:
    assert request.method == "GET"
    if request.path not in LISTS:
        status = {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "not found"}
        return web.json_response(status, status=404)
    return web.json_response({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": LISTS[request.path]})


async def run_migrate(folder: Path, *words: str) -> tuple[int, str, str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with api_client(app, folder):
        return await run_with_kubeconfig(folder / "kubeconfig", "migrate", *words)


async def test_each_job_has_a_line_and_its_problems(tmp_path: Path) -> None:
    code, output, messages = await run_migrate(tmp_path, "--from", "kubeflow", "-n", "team-a")
    assert (code, messages) == (1, "")
    assert (
        output
        == """\
NAMESPACE  KIND        NAME       BECOMES
team-a     MPIJob      pi         2 x 1 ranks, mpi
team-a     PyTorchJob  live       1 x 1 ranks, direct
team-a     TrainJob    deepspeed  not imported: 1 problem
  TrainJob team-a/deepspeed: spec.runtimeRef.name: the ClusterTrainingRuntime deepspeed-distributed is needed: set \
--runtime FILE; `kubectl get clustertrainingruntime deepspeed-distributed -o yaml` prints it
team-a     TrainJob    mnist      2 x Auto ranks, torchrun
"""
    )


async def test_all_namespaces(tmp_path: Path) -> None:
    code, output, messages = await run_migrate(tmp_path, "--from", "volcano", "--all-namespaces")
    assert (code, messages) == (0, "")
    assert output.splitlines()[1] == "team-b     Job   pytorch-job  3 x 1 ranks, direct"


async def test_a_cluster_without_such_kinds(tmp_path: Path) -> None:
    code, output, messages = await run_migrate(tmp_path, "--from", "jobset", "-n", "team-a")
    assert (code, output, messages) == (0, "", "team-a: found none of JobSet\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "slurm"], "muster: --from slurm: expected kubeflow, jobset, volcano\n"),
        (["--from", "kubeflow", "-n", "Team A"], "is not a namespace's name"),
        (["--from", "kubeflow", "-n", "a", "-A"], "use either --namespace or --all-namespaces"),
    ],
)
async def test_bad_options(words: list[str], message: str, tmp_path: Path) -> None:
    code, output, messages = await run_migrate(tmp_path, *words)
    assert (code, output) == (2, "")
    assert message in messages
