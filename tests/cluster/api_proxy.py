"""A proxy in front of the API server. It records every call, and a test decides the result of each.

    async with ApiProxy.serve(tmp_path, places.state().kubeconfig) as proxy:
        proxy.decide = lambda call: Answer(429, "TooManyRequests") if call.verb == "create" else PASS
        client = await Client.connect(str(proxy.kubeconfig))

It sends requests to the API server as the kubeconfig's user, for every client.
"""

import asyncio
import base64
import datetime as dt
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import aiohttp
import yaml
from aiohttp import web

from cluster.authority import Authority
from muster.clients.kubernetes.connector import AbortingConnector

# The proxy has separate HTTP connections to both sides.
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "host"}
NOT_FORWARDED = HOP_BY_HOP | {"accept-encoding", "authorization"}
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
MAX_BODY_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Call:
    """A request in the terms of the audit log. `number` counts from 0. `resource` may be `pods` or `pods/log`.

    `verb` and `resource` are "get" and "" for paths without a resource.
    """

    number: int
    method: str
    path: str
    query: str
    verb: str
    resource: str
    namespace: str
    name: str
    body: bytes
    agent: str
    authorization: str


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Pass:
    """The API server answers, `seconds` late."""

    seconds: float = 0.0


@dataclass(frozen=True)
class Drop:
    """The API server never gets the request: `then` is called and the connection is closed."""

    then: Callable[[], None] = nothing


@dataclass(frozen=True)
class Lose:
    """The API server executes the request, and the response is lost: `then` is called instead, and the connection is
    closed.

    A watch is only closed.
    """

    then: Callable[[], None] = nothing


@dataclass(frozen=True)
class Answer:
    """The proxy sends this answer. The API server never gets the request."""

    code: int
    reason: str
    retry_after: int | None = None


@dataclass(frozen=True)
class Stream:
    """A watch that sends these lines and ends."""

    text: bytes


Fate: TypeAlias = Pass | Drop | Lose | Answer | Stream
PASS = Pass()


def error_event(code: int, reason: str) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": "ERROR", "object": status(code, reason, None)}).encode() + b"\n"


def status(code: int, reason: str, retry_after: int | None) -> dict[str, object]:
    """Return a metav1.Status."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "the test wants it so",
        "reason": reason,
        "code": code,
        "details": {} if retry_after is None else {"retryAfterSeconds": retry_after},
    }


class ApiProxy:
    """`calls` are all received calls; `decide` may be set at any time, and is called for each call."""

    def __init__(self, server: str, upstream: aiohttp.ClientSession, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.calls: list[Call] = []
        self.decide: Callable[[Call], Fate] = lambda _: PASS
        self._server = server
        self._upstream = upstream
        self._watches: set[asyncio.Transport] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    @classmethod
    @asynccontextmanager
    async def serve(cls, folder: Path, kubeconfig: Path, host: str = "127.0.0.1") -> AsyncIterator["ApiProxy"]:
        """Start a proxy at `host`, on a free port. Its kubeconfig is written into `folder`."""
        server, trust, headers = credentials(folder, kubeconfig)
        pair = Authority(dt.datetime.now(dt.UTC))
        context = serving(folder, pair, host)
        connector = AbortingConnector(trust)
        endless = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=endless, headers=headers) as upstream:
            proxy = cls(server, upstream, folder / "proxy-kubeconfig")
            application = web.Application(client_max_size=MAX_BODY_BYTES)
            application.router.add_route("*", "/{path:.*}", proxy.handle)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            try:
                site = web.TCPSite(runner, host, 0, ssl_context=context)
                await site.start()
                port = runner.addresses[0][1]
                write_kubeconfig(proxy.kubeconfig, f"https://{host}:{port}", pair.pair.certificate)
                yield proxy
            finally:
                # TLS would first wait for the clients to close, and a killed or busy client may never do it.
                for connection in runner.server.connections if runner.server is not None else ():
                    if connection.transport is not None:
                        connection.transport.abort()
                await runner.cleanup()

    def cut_watches(self) -> None:
        """Close the connections of all current watches and log streams."""
        for transport in self._watches:
            transport.abort()

    def stall_watches(self) -> None:
        """Hold back all data of current and later watches, with the connections open."""
        self._flowing.clear()

    def release_watches(self) -> None:
        """Send the data that was held back."""
        self._flowing.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handle one call."""
        call = recognise(len(self.calls), request, await request.read())
        self.calls.append(call)
        fate = self.decide(call)
        match fate:
            case Pass(seconds):
                await asyncio.sleep(seconds)
                return await self._forward(request, call)
            case Lose(then):
                if not is_long(call):
                    await self._forward(request, call)
                then()
                return close(request)
            case Drop(then):
                then()
                return close(request)
            case Stream(text):
                return web.Response(body=text, content_type="application/json")
            case Answer(code, reason, retry_after):
                headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
                return web.json_response(status(code, reason, retry_after), status=code, headers=headers)

    async def _forward(self, request: web.Request, call: Call) -> web.StreamResponse:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in NOT_FORWARDED}
        url = self._server + request.raw_path
        try:
            async with self._upstream.request(call.method, url, headers=headers, data=call.body or None) as answer:
                kept = {key: value for key, value in answer.headers.items() if key.lower() not in HOP_BY_HOP}
                if is_long(call) and answer.ok:
                    return await self._pass_on(request, answer, kept)
                return web.Response(status=answer.status, body=await answer.read(), headers=kept)
        except aiohttp.ClientError:
            return close(request)

    async def _pass_on(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        transport = request.transport
        if transport is None:
            return response
        self._watches.add(transport)
        try:
            async for chunk in answer.content.iter_any():
                await self._flowing.wait()
                await response.write(chunk)
            await response.write_eof()
        except ConnectionResetError:
            # The watching client has disconnected.
            return response
        finally:
            self._watches.discard(transport)
            leave(answer)
        return response


def is_long(call: Call) -> bool:
    """Whether the answer is a stream."""
    return call.verb == "watch" or "follow=true" in call.query


def leave(stream: aiohttp.ClientResponse) -> None:
    """Stop reading a stream, and close its connection at once."""
    # TLS would first wait for the API server to close: the event loop may end earlier.
    if stream.connection is not None and stream.connection.transport is not None:
        stream.connection.transport.abort()
    stream.close()


def close(request: web.Request) -> web.StreamResponse:
    """End the connection without an answer; the returned response is not sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def recognise(number: int, request: web.Request, body: bytes) -> Call:
    """Parse /api/v1 or /apis/<group>/<version>, an optional namespaces/<namespace>, and
    resource[/name[/subresource]].
    """
    parts = request.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, *subresource = [*rest, "", ""][: max(2, len(rest))]
    verb = VERBS[request.method]
    if plural and not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if request.query.get("watch") in ("true", "1"):
        verb = "watch"
    return Call(
        number=number,
        method=request.method,
        path=request.path,
        query=request.query_string,
        verb=verb,
        resource="/".join([plural, *subresource]),
        namespace=namespace,
        name=name,
        body=body,
        agent=request.headers.get("User-Agent", ""),
        authorization=request.headers.get("Authorization", ""),
    )


def credentials(folder: Path, kubeconfig: Path) -> tuple[str, ssl.SSLContext, dict[str, str]]:
    """Return the server of a kubeconfig with one cluster and one user, and the user's certificate or token."""
    text = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    cluster, user = text["clusters"][0]["cluster"], text["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    if "token" in user:
        return cluster["server"], context, {"Authorization": f"Bearer {user['token']}"}
    # Python reads a client certificate from files only.
    certificate, key = folder / "proxy-client.crt", folder / "proxy-client.key"
    certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
    key.touch(mode=0o600)
    key.write_bytes(base64.b64decode(user["client-key-data"]))
    context.load_cert_chain(certificate, key)
    return cluster["server"], context, {}


def serving(folder: Path, authority: Authority, host: str) -> ssl.SSLContext:
    """Return the proxy's own certificate."""
    pair = authority.issue("muster-proxy", hosts=[host])
    file = folder / "proxy-server.pem"
    file.touch(mode=0o600)
    file.write_bytes(pair.key + pair.certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


def write_kubeconfig(path: Path, server: str, authority: bytes) -> None:
    """Write a kubeconfig for clients of the proxy. It has a token, because clients without credentials would be
    anonymous.
    """
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    by_key = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "clusters": [{"name": "proxy", "cluster": cluster}],
        "users": [{"name": "proxy", "user": {"token": "the-proxy-has-its-own"}}],
    }
    path.write_text(json.dumps(by_key), encoding="utf-8")
