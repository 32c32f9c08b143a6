"""Send requests to one AWS region with one role: with threads and timeouts, renewed credentials, and AwsError."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from botocore import xform_name
from botocore.awsrequest import AWSResponse
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from muster.api.config.sagemaker import AwsEndpoints
from muster.clients.aws.credentials import create_session
from muster.clients.aws.threads import MAX_THREADS, ThreadPool
from muster.clients.request_counter import RequestCounter
from muster.diagnose.aws import translate_error
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import ExpiredCredentials, NoCredentials, Unavailable

Service: TypeAlias = Literal["sagemaker", "s3", "sts", "logs"]

Response: TypeAlias = Mapping[str, object]
"""A response of botocore: strings, numbers, lists, mappings, and datetimes with a time zone."""

CONNECT_SECONDS = 5.0
RESPONSE_SECONDS = 20.0
"""The timeout of a response; CreateTrainingJob takes a second or two."""

RENEW_SECONDS = 5.0
"""The minimum interval of new clients: creating a client takes time, because it reads files."""

_READ_ONLY_PREFIXES = ("Assume", "Describe", "Get", "Head", "List")
"""Prefixes of read-only operations."""

_CONFIG = Config(
    connect_timeout=CONNECT_SECONDS,
    read_timeout=RESPONSE_SECONDS,
    # This package retries requests itself: botocore's retries would count against the same quotas.
    retries={"mode": "standard", "total_max_attempts": 1},
    max_pool_connections=MAX_THREADS,
    user_agent_extra="muster",
)


def always_true() -> bool:
    """Allow every change: the default of `is_change_allowed`."""
    return True


class _ChangeForbidden(Exception):
    """This process doesn't hold the Lease, so it must not change anything in AWS."""


class Connection:
    """Sends requests to one region with one role. It creates clients when needed, and again after a credentials error.

    The connection sends requests that change AWS only while `is_change_allowed()` returns True. It calls
    `is_change_allowed` in worker threads.
    """

    def __init__(
        self,
        aws_access: AwsAccess,
        endpoints: AwsEndpoints,
        threads: ThreadPool,
        is_change_allowed: Callable[[], bool] = always_true,
        request_counter: RequestCounter | None = None,
    ) -> None:
        self.aws_access = aws_access
        self._endpoints = endpoints
        self._threads = threads
        self._is_change_allowed = is_change_allowed
        self._request_counter = request_counter or RequestCounter()
        self._dropped_clients_at = float("-inf")
        # A slow upload to S3 must not delay requests about training jobs.
        self._s3_threads = ThreadPool()
        # One thread at a time creates clients, because threads can't share a botocore session.
        self._creation_lock = threading.Lock()
        self._session: Session | None = None
        self._clients: dict[Service, BaseClient] = {}

    async def send_request(self, service: Service, operation: str, request: Mapping[str, object]) -> Response:
        """Send a request once, without retries. `operation` is the API's name, such as `ListTags`. Raises AwsError."""
        threads = self._s3_threads if service == "s3" else self._threads
        now = asyncio.get_running_loop().time()
        return await threads.run(lambda: self._send_request(service, operation, request, now))

    def close(self) -> None:
        """Close all connections."""
        self._s3_threads.close()
        with self._creation_lock:
            for client in self._clients.values():
                client.close()

    def _send_request(self, service: Service, operation: str, request: Mapping[str, object], now: float) -> Response:
        try:
            client = self.client(service)
            response: Response = getattr(client, xform_name(operation))(**request)
        except _ChangeForbidden as error:
            raise Unavailable(f"{operation} was not sent: this operator doesn't hold the Lease") from error
        except (BotoCoreError, ClientError) as error:
            aws_error = translate_error(error, service, operation, self.aws_access)
            if isinstance(aws_error, NoCredentials | ExpiredCredentials):
                self._drop_clients(now)
            raise aws_error from error
        return response

    def client(self, service: Service) -> BaseClient:
        """Return botocore's client, for transfers of several requests. Blocking. Raises botocore's errors."""
        with self._creation_lock:
            if service not in self._clients:
                self._clients[service] = self._create_client(service)
            return self._clients[service]

    def _create_client(self, service: Service) -> BaseClient:
        if self._session is None:
            self._session = create_session(self.aws_access, self._endpoints.sts, _CONFIG)
        url = getattr(self._endpoints, service)
        client = self._session.create_client(service, endpoint_url=url, config=_CONFIG)
        # Check right before sending: loading credentials, for example, may take long.
        client.meta.events.register_first("before-send", self._check_before_send)
        client.meta.events.register("after-call", self._count_response)
        client.meta.events.register("after-call-error", self._count_failure)
        return client

    def _check_before_send(self, event_name: str, **_: object) -> None:
        operation = event_name.rpartition(".")[2]
        if not operation.startswith(_READ_ONLY_PREFIXES) and not self._is_change_allowed():
            raise _ChangeForbidden

    def _count_response(self, event_name: str, http_response: AWSResponse, **_: object) -> None:
        service, operation = event_name.split(".")[1:]
        self._request_counter.count(service, operation, http_response.status_code)

    def _count_failure(self, event_name: str, exception: Exception, **_: object) -> None:
        if not isinstance(exception, _ChangeForbidden):
            service, operation = event_name.split(".")[1:]
            self._request_counter.count(service, operation, 0)

    def _drop_clients(self, now: float) -> None:
        # New clients load the credentials again.
        with self._creation_lock:
            if 0 <= now - self._dropped_clients_at < RENEW_SECONDS:
                return
            self._dropped_clients_at = now
            self._session = None
            self._clients.clear()
