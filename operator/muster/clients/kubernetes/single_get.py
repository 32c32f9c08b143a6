"""Read one object from the API server, without an event loop, for a command that makes one request."""

from __future__ import annotations

import socket
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse

from muster.clients.kubernetes.direct_access import DirectAccess
from muster.clients.kubernetes.request_settings import MAX_ERROR_BYTES, MAX_RESPONSE_BYTES, RESPONSE_SECONDS, USER_AGENT
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import Kind, Object
from muster.objects.kubernetes.responses import build_response_error, parse_object


def get_object(access: DirectAccess, kind: Kind, namespace: str, name: str) -> Object:
    """Return an object. Raises `ApiError`."""
    path = kind.build_path(namespace, name)
    try:
        body = _get(access, path)
    except (HTTPException, OSError) as error:
        reason = f"within {RESPONSE_SECONDS:.0f} s" if isinstance(error, TimeoutError) else f"({error})"
        server = access.url.geturl().rstrip("/")
        raise ApiError(NO_RESPONSE, "NoAnswer", f"no answer from {server} to GET {path} {reason}") from error
    return parse_object(body, kind.parse_options)


def _get(access: DirectAccess, path: str) -> bytes:
    host = str(access.url.hostname)
    port = access.url.port or (80 if access.tls is None else 443)
    with socket.create_connection((host, port), RESPONSE_SECONDS) as plain:
        connection = HTTPConnection(host, port)
        connection.sock = plain
        if access.tls is not None:
            connection.sock = access.tls.wrap_socket(plain, server_hostname=access.tls_server_name)
        try:
            headers = {"Accept": "application/json", "User-Agent": USER_AGENT}
            if access.token:
                headers["Authorization"] = f"Bearer {access.token}"
            connection.request("GET", path, headers=headers)
            return _read(connection.getresponse(), path)
        finally:
            connection.close()


def _read(response: HTTPResponse, path: str) -> bytes:
    if response.status != HTTPStatus.OK:
        raise build_response_error(response.status, dict(response.headers), response.read(MAX_ERROR_BYTES))
    body = response.read(MAX_RESPONSE_BYTES + 1)
    if len(body) > MAX_RESPONSE_BYTES:
        raise ApiError(NO_RESPONSE, "TooLong", f"the answer to GET {path} is longer than {MAX_RESPONSE_BYTES} bytes")
    return body
