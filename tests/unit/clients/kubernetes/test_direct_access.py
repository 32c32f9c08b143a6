"""The usual kubeconfig is read without the official client, and every other one is left to it."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from fakes.api_server import ApiServer, make_failure, served
from muster.clients.kubernetes.direct_access import DirectAccess, find_direct_access
from muster.clients.kubernetes.direct_requests import get_object
from muster.collector.trust.certificate import issue_certificate, make_server_context
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import JOBS, Object

RESOURCE: dict[str, Any] = {"metadata": {"name": "digits", "resourceVersion": "1"}}
API_VERSION = "client.authentication.k8s.io/v1"


def plugin(status: Mapping[str, str], version: str = API_VERSION) -> dict[str, Any]:
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return {"apiVersion": API_VERSION, "command": "sh", "args": ["-c", f"echo '{json.dumps(answer)}'"]}


def write_kubeconfig(folder: Path, cluster: Mapping[str, Any], user: Mapping[str, Any], **changes: object) -> Path:
    config = {
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me", "namespace": "team"}}],
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
    }
    file = folder / "config"
    file.write_text(json.dumps(config | changes))
    return file


def find(file: Path) -> DirectAccess | None:
    return find_direct_access({"KUBECONFIG": str(file), "PATH": "/usr/bin:/bin"})


async def get(access: DirectAccess | None) -> Object:
    assert access is not None
    return await asyncio.to_thread(get_object, access, JOBS, "team", "digits")


@asynccontextmanager
async def tls_server() -> AsyncIterator[tuple[TestServer, str]]:
    """Yield a server that returns the request's Authorization, and its CA."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"metadata": {"name": request.headers.get("Authorization", "")}})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    certificate = issue_certificate(["127.0.0.1", "api.example"], time.time(), 3600.0)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=make_server_context(certificate))
    try:
        yield server, certificate.authority
    finally:
        await server.close()


@pytest.mark.parametrize(
    ("user", "header"),
    [({"token": "t0ken"}, "Bearer t0ken"), ({"exec": plugin({"token": "fresh"})}, "Bearer fresh"), ({}, "")],
    ids=["token", "plug-in", "none"],
)
async def test_the_server_is_checked_and_receives_the_token(user: dict[str, Any], header: str, tmp_path: Path) -> None:
    async with tls_server() as (server, authority):
        cluster = {
            "server": str(server.make_url("/")),
            "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
            "tls-server-name": "api.example",
        }
        access = find(write_kubeconfig(tmp_path, cluster, user))
        assert access is not None
        assert access.namespace == "team"
        assert (await get(access))["metadata"] == {"name": header}


async def test_a_server_of_another_authority_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(issue_certificate(["127.0.0.1"], time.time(), 3600.0).authority)
    async with tls_server() as (server, _):
        cluster = {"server": str(server.make_url("/")), "certificate-authority": "ca.crt"}
        with pytest.raises(ApiError, match="certificate verify failed") as caught:
            await get(find(write_kubeconfig(tmp_path, cluster, {})))
        assert caught.value.status == NO_RESPONSE
        unchecked = {"server": str(server.make_url("/")), "insecure-skip-tls-verify": True}
        assert await get(find(write_kubeconfig(tmp_path, unchecked, {})))


def test_a_client_certificate_is_loaded_from_data_and_leaves_no_file(tmp_path: Path) -> None:
    own = issue_certificate(["me"], time.time(), 3600.0)
    data = {
        "client-certificate-data": base64.b64encode(own.certificate.encode()).decode(),
        "client-key-data": base64.b64encode(own.key).decode(),
    }
    cluster = {"server": "https://lab.example:6443"}
    assert find(write_kubeconfig(tmp_path, cluster, data)) is not None
    assert find(write_kubeconfig(tmp_path, cluster, {**data, "client-key-data": ""})) is None


async def test_errors_are_those_of_the_api_server(tmp_path: Path) -> None:
    server = ApiServer(RESOURCE)
    async with served(server, tmp_path):
        access = find(tmp_path / "kubeconfig")
        assert await get(access) == RESOURCE
        server.mishaps = [lambda _: make_failure(403, "Forbidden", "no"), lambda _: None]
        with pytest.raises(ApiError, match="403 Forbidden: no"):
            await get(access)
        with pytest.raises(ApiError, match=r"no answer from http://.* to GET /apis/.*/digits") as broken:
            await get(access)
        assert broken.value.status == NO_RESPONSE
        server.resource = None
        with pytest.raises(ApiError) as missing:
            await get(access)
        assert missing.value.is_not_found


HTTP = {"server": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("cluster", "user", "changes"),
    [
        ({**HTTP, "proxy-url": "http://proxy.example"}, {}, {}),
        ({"server": "http://127.0.0.1:1/prefix"}, {}, {}),
        ({"server": "unix:///a"}, {}, {}),
        (HTTP, {"auth-provider": {"name": "oidc"}}, {}),
        (HTTP, {"tokenFile": "/token"}, {}),
        (HTTP, {"username": "me", "password": "secret"}, {}),
        (HTTP, {"exec": plugin({"token": "fresh"}, version="v0")}, {}),
        (HTTP, {"exec": {"apiVersion": API_VERSION, "command": "false"}}, {}),
        (HTTP, {"exec": {"apiVersion": API_VERSION, "command": "echo", "args": ["no JSON"]}}, {}),
        (HTTP, {"exec": {"apiVersion": API_VERSION, "command": "no-such-program"}}, {}),
        (HTTP, {}, {"current-context": "home"}),
        (HTTP, {}, {"users": []}),
        (HTTP, {}, {"clusters": 3}),
        ({"server": "https://a", "certificate-authority": "absent"}, {}, {}),
        ({"server": "https://a", "certificate-authority-data": "AAAA"}, {}, {}),
    ],
    ids=str,
)
def test_other_configurations_are_left_to_the_official_client(
    cluster: dict[str, Any], user: dict[str, Any], changes: dict[str, object], tmp_path: Path
) -> None:
    assert find(write_kubeconfig(tmp_path, HTTP, {})) is not None
    assert find(write_kubeconfig(tmp_path, cluster, user, **changes)) is None


def test_without_one_file_or_with_a_proxy_the_official_client_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_kubeconfig(tmp_path, HTTP, {})
    assert find(tmp_path / "absent") is None
    assert find(Path(f"{file}:{file}")) is None
    (tmp_path / "broken").write_text(": [")
    assert find(tmp_path / "broken") is None
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    assert find(file) is None
