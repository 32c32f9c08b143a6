"""The operator's client, connected to a fake API server."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

from muster.clients.kubernetes.client import Client
from muster.collector.trust.certificate import issue_certificate


@cache
def _get_authority() -> str:
    """Return a certificate authority in base64, as kubeconfigs have it.

    Without one, each client would load the machine's authorities, which takes longer than most tests.
    """
    return base64.b64encode(issue_certificate(("127.0.0.1",), time.time(), 86_400.0).authority.encode()).decode()


@asynccontextmanager
async def api_client(app: web.Application, folder: Path) -> AsyncIterator[Client]:
    """Yield a client of `app` while the app is served; its kubeconfig is in `folder`."""
    http = TestServer(app)
    await http.start_server()
    cluster = {"server": str(http.make_url("/")), "certificate-authority-data": _get_authority()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    client = await Client.connect(str(path))
    try:
        yield client
    finally:
        await client.close()
        await http.close()
