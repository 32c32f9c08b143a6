"""Read objects from the API server without an event loop, for a command that makes one request after the other."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlencode

from muster.clients.kubernetes.direct_access import DirectAccess
from muster.clients.kubernetes.request_settings import (
    JSON_CONTENT,
    MAX_ERROR_BYTES,
    MAX_RESPONSE_BYTES,
    RESPONSE_SECONDS,
    USER_AGENT,
    build_accept_header,
)
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import Kind, Object
from muster.objects.kubernetes.responses import build_response_error, parse_object, read_page

PAGE_SIZE = 100
"""The maximum number of objects in a page: a job's resource may have more than 100 KiB."""

_TOO_LONG = "TooLong"


def get_object(access: DirectAccess, kind: Kind, namespace: str, name: str) -> Object:
    """Return an object. Raises `ApiError`."""
    return parse_object(_fetch(access, kind.build_path(namespace, name)), kind.parse_options)


def list_objects(
    access: DirectAccess, kind: Kind, namespace: str | None, seconds: float = RESPONSE_SECONDS
) -> Iterator[Object]:
    """Yield the objects of a namespace (None: of all). Each response may take `seconds`. Raises `ApiError`."""
    path = f"{kind.build_path(namespace)}?"
    query: dict[str, str | int] = {"limit": PAGE_SIZE}
    while True:
        try:
            page = read_page(_fetch(access, path + urlencode(query), seconds, build_accept_header(kind, "List")))
        except ApiError as error:
            if error.reason != _TOO_LONG or query["limit"] == 1:
                raise
            query["limit"] = 1
            continue
        for item in page.parse_items(kind.parse_options):
            # In lists, the API server omits apiVersion and kind.
            yield {"apiVersion": kind.api_version, "kind": kind.name, **item}
        if not page.continue_token:
            return
        query["continue"] = page.continue_token


def _fetch(access: DirectAccess, path: str, seconds: float = RESPONSE_SECONDS, accept: str = JSON_CONTENT) -> bytes:
    try:
        return _get(access, path, seconds, accept)
    except (HTTPException, OSError) as error:
        reason = f"within {seconds:.0f} s" if isinstance(error, TimeoutError) else f"({error})"
        server = access.url.geturl().rstrip("/")
        raise ApiError(NO_RESPONSE, "NoAnswer", f"no answer from {server} to GET {path} {reason}") from error


def _get(access: DirectAccess, path: str, seconds: float, accept: str) -> bytes:
    host = str(access.url.hostname)
    port = access.url.port or (80 if access.tls is None else 443)
    with socket.create_connection((host, port), seconds) as plain:
        connection = HTTPConnection(host, port)
        connection.sock = plain
        if access.tls is not None:
            connection.sock = access.tls.wrap_socket(plain, server_hostname=access.tls_server_name)
        try:
            connection.request("GET", path, headers=_build_headers(access, accept))
            return _read(connection.getresponse(), path)
        finally:
            connection.close()


def _build_headers(access: DirectAccess, accept: str) -> Mapping[str, str]:
    headers = {"Accept": accept, "User-Agent": USER_AGENT}
    return {**headers, "Authorization": f"Bearer {access.token}"} if access.token else headers


def _read(response: HTTPResponse, path: str) -> bytes:
    if response.status != HTTPStatus.OK:
        raise build_response_error(response.status, dict(response.headers), response.read(MAX_ERROR_BYTES))
    body = response.read(MAX_RESPONSE_BYTES + 1)
    if len(body) > MAX_RESPONSE_BYTES:
        raise ApiError(NO_RESPONSE, _TOO_LONG, f"the answer to GET {path} is longer than {MAX_RESPONSE_BYTES} bytes")
    return body
