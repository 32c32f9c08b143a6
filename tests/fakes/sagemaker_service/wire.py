"""Connects the service to botocore without a socket, for tests in virtual time."""

from __future__ import annotations

import io
from collections.abc import Mapping

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.client import BaseClient
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectionClosedError

from fakes.sagemaker_service.service import NoReply, Service
from muster.clients.aws.client import Aws
from muster.clients.aws.connection import Service as AwsService
from muster.objects.aws.access import AwsAccess

ASKED: tuple[AwsService, ...] = ("sagemaker", "sts", "logs")


def join(aws: Aws, aws_access: AwsAccess, service: Service, *, keeps_clients: bool = False) -> None:
    """Let `service` answer the requests of `aws` to SageMaker, STS and CloudWatch Logs with this region and role.

    muster creates new clients when the credentials of the old ones are invalid. With `keeps_clients`, it gets the old
    ones again: the fake credentials don't change, and a new client takes a tenth of a second.
    """

    def answer(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        body = request.body if isinstance(request.body, bytes) else str(request.body).encode()
        reply = service.handle(_decode_headers(dict(request.headers.items())), body)
        if isinstance(reply, NoReply):
            raise ConnectionClosedError(endpoint_url=request.url)
        headers = HTTPHeaders.from_dict({key.lower(): value for key, value in reply.headers.items()})
        return AWSResponse(request.url, reply.status, headers, _Body(reply.body.encode()))

    connection = aws.get_connection(aws_access)
    new_client = connection._create_client
    clients: dict[AwsService, BaseClient] = {}

    def joined(name: AwsService) -> BaseClient:
        if keeps_clients and name in clients:
            return clients[name]
        client = clients[name] = new_client(name)
        client.meta.events.register(f"before-send.{name}", answer)  # type: ignore[arg-type]
        return client

    connection._create_client = joined  # type: ignore[method-assign, assignment]
    for name in ASKED:
        connection.client(name)


class _Body(io.BytesIO):
    """The part of urllib3's response that botocore reads."""

    def stream(self) -> list[bytes]:
        return [self.read()]


def _decode_headers(headers: Mapping[str, object]) -> dict[str, str]:
    # botocore has already converted some of them to bytes.
    return {key: value.decode() if isinstance(value, bytes) else str(value) for key, value in headers.items()}
