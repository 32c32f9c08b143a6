"""Requests to the API server are counted by verb, resource and code, for metrics."""

import contextlib
from pathlib import Path

from fakes.api_server import ApiServer, make_failure, served
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS
from unit.controller.cluster_resources import resource


async def test_each_request_is_counted_by_its_code(tmp_path: Path) -> None:
    server = ApiServer(dict(resource()))
    async with served(server, tmp_path) as client:
        await client.get(JOBS, "team", "vit")
        server.mishaps += [lambda _: make_failure(409, "Conflict", "changed"), lambda _: None]
        for _ in range(2):
            with contextlib.suppress(ApiError):
                await client.merge(JOBS, "team", "vit", {"status": {}}, "status")
        with contextlib.suppress(ApiError):
            await client.restrict_changes(lambda: False).merge(JOBS, "team", "vit", {}, "status")
        status = "distributedtrainingjobs/status"
        assert client.request_counter.counts() == {
            ("get", "distributedtrainingjobs", "200"): 1,
            ("patch", status, "409"): 1,
            ("patch", status, "none"): 1,
        }
