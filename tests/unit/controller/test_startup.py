"""The operator's messages and actions if it can't work yet, or not at all."""

from pathlib import Path

import pytest

from fakes.api_server import ApiServer, make_failure, served
from muster.controller import startup
from muster.controller.startup import StartupError, check_cluster, run_with_retries
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import PODS

FORBIDDEN = 'pods is forbidden: User "muster" cannot list resource "pods" in API group "" in the namespace "team"'


def listing() -> ApiServer:
    """Return a server whose lists are empty."""
    return ApiServer({"metadata": {"resourceVersion": "1"}, "items": []})


async def test_a_missing_right_is_named(tmp_path: Path) -> None:
    server = listing()
    async with served(server, tmp_path) as client:
        await check_cluster(client, ("team",), lambda: 0.0)
        server.mishaps = [lambda _: make_failure(403, "Forbidden", FORBIDDEN)]
        with pytest.raises(StartupError, match=r'cannot list resource "pods".*namespace "team"'):
            await run_with_retries("listing pods", lambda: client.list(PODS, "team"), lambda: 0.0)


async def test_nodes_are_listed_only_if_the_operator_reads_them(tmp_path: Path) -> None:
    server = listing()
    async with served(server, tmp_path) as client:
        server.mishaps = [lambda _: make_failure(403, "Forbidden", FORBIDDEN)]
        with pytest.raises(StartupError, match="listing nodes: the API server denies it"):
            await check_cluster(client, ("team",), lambda: 0.0, reads_nodes=True)


async def test_a_cluster_that_does_not_know_jobs_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(startup, "CRD_CHECK_SECONDS", 0.01)
    server = listing()
    server.mishaps = [lambda _: make_failure(404, "NotFound", "the server could not find the requested resource")] * 3
    async with served(server, tmp_path) as client:
        await check_cluster(client, (), lambda: 0.0)
    assert [
        record.getMessage().count("muster crd | kubectl apply --server-side -f -") for record in caplog.records
    ] == [1]


async def test_an_api_server_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    server = listing()
    server.mishaps = [lambda _: make_failure(500, "InternalError", "etcd"), lambda _: None]
    async with served(server, tmp_path) as client:
        await check_cluster(client, ("team",), lambda: 0.0)
    assert server.mishaps == []


async def test_what_asking_again_does_not_change_is_raised(tmp_path: Path) -> None:
    server = listing()
    server.mishaps = [lambda _: make_failure(422, "Invalid", "no such field")]
    async with served(server, tmp_path) as client:
        with pytest.raises(ApiError, match="no such field"):
            await run_with_retries("listing pods", lambda: client.list(PODS, "team"), lambda: 0.0)
