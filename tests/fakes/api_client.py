"""The operator's client, connected to a fake API server."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from muster.clients.kubernetes.client import Client


@asynccontextmanager
async def api_client(app: web.Application, folder: Path) -> AsyncIterator[Client]:
    """Yield a client of `app` while the app is served; its kubeconfig is in `folder`."""
    http = TestServer(app)
    await http.start_server()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": str(http.make_url("/"))}}],
        "users": [{"name": "test", "user": {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        # Loading the machine's certificate authorities takes longer than most tests, and none is needed for http.
        patch.setenv("SSL_CERT_FILE", os.devnull)
        client = await Client.connect(str(path))
    try:
        yield client
    finally:
        await client.close()
        await http.close()
