"""An S3 and an STS for pods, where each client has a role: a service account's, as on EKS, or the test's."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import jwt
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from cluster import lan
from fakes import s3_server

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_KEY_ID = re.compile(r"Credential=([^/]+)/")
_TEMPORARY = "ASIA"
"""The prefix of key ids from STS (IAM User Guide, "Unique identifiers")."""

_ERROR = "<Error><Code>{code}</Code><Message>{code} for the tests</Message></Error>"

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class Asked:
    """A request of `address`, for a path that begins with the bucket."""

    address: str
    method: str
    path: str


@dataclass(frozen=True)
class Role:
    """The role for which STS issued credentials."""

    arn: str
    subject: str
    audience: tuple[str, ...]


@dataclass
class PodsS3:
    """`denied` are requests that are denied to every client: a method and a prefix of the path.

    `client` is the test's own.
    """

    url: str
    client: S3Client
    denied: set[tuple[str, str]] = field(default_factory=set)
    asked: list[Asked] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)

    def objection(self, asked: Asked, key_id: str) -> str | None:
        """S3's error code for the request, if it is refused."""
        if key_id != s3_server.ENVIRONMENT["AWS_ACCESS_KEY_ID"] and not key_id.startswith(_TEMPORARY):
            return "InvalidAccessKeyId"
        is_denied = any(asked.method == method and asked.path.startswith(path) for method, path in self.denied)
        return "AccessDenied" if is_denied else None


class _Gate:
    site: PodsS3

    def __init__(self, behind: Application) -> None:
        self._behind = behind

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        asked = Asked(environ["REMOTE_ADDR"], environ["REQUEST_METHOD"], environ["PATH_INFO"])
        key_id = _KEY_ID.search(environ.get("HTTP_AUTHORIZATION", ""))
        if key_id is None:
            self.site.roles.append(_role(environ))
            return self._behind(environ, start)
        self.site.asked.append(asked)
        code = self.site.objection(asked, key_id[1])
        if code is None:
            return self._behind(environ, start)
        start("403 Forbidden", [("Content-Type", "application/xml")])
        return [_ERROR.format(code=code).encode()]


def _role(environ: dict[str, Any]) -> Role:
    """Answer AssumeRoleWithWebIdentity, whose requests are the only unsigned ones."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    form = parse_qs(body.decode())
    claims = jwt.decode(form["WebIdentityToken"][0], options={"verify_signature": False})
    return Role(form["RoleArn"][0], claims["sub"], tuple(claims["aud"]))


@contextmanager
def pods_s3() -> Iterator[PodsS3]:
    """Yield an S3 without buckets, at the machine's address in the cluster's network."""
    gate = _Gate(DomainDispatcherApplication(create_backend_app))
    server = make_server(lan.HOST, 0, gate, threaded=True, request_handler=_Quiet)
    url = f"http://{lan.HOST}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    with closing(s3_server.make_client(url)) as client:
        gate.site = PodsS3(url, client)
        thread.start()
        try:
            yield gate.site
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Quiet(MotoRequestHandler):
    def log(self, *_: object) -> None:
        pass
