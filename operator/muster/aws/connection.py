"""Requests to AWS from one place: threads, time limits, credentials that change, and errors of one kind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from botocore import xform_name
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from muster.api.sagemaker_config import AwsEndpoints
from muster.aws.classify import classified
from muster.aws.credentials import new_session
from muster.aws.errors import ExpiredCredentials, NoCredentials, Unavailable
from muster.aws.place import Place
from muster.aws.threads import MAX_THREADS, Threads

Service: TypeAlias = Literal["sagemaker", "s3", "sts", "logs"]

Answer: TypeAlias = Mapping[str, object]
"""What botocore makes of an answer: strings, numbers, lists, mappings, and datetimes with their zone."""

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 20.0
"""How long an answer is waited for; CreateTrainingJob takes a second or two."""

RENEW_SECONDS = 5.0
"""Clients are made anew no more often: each reads all that AWS describes of its service, and files of credentials."""

_READING = ("Assume", "Describe", "Get", "Head", "List")
"""What the operations begin with that change nothing."""

_CONFIG = Config(
    connect_timeout=CONNECT_SECONDS,
    read_timeout=ANSWER_SECONDS,
    # When something is asked again is decided here: botocore's own attempts count against the same quotas.
    retries={"mode": "standard", "total_max_attempts": 1},
    max_pool_connections=MAX_THREADS,
    user_agent_extra="muster",
)


def always() -> bool:
    """What is asked when nothing speaks against it."""
    return True


class _MayNotChange(Exception):
    """The Lease isn't held: what the request would change is another operator's."""


class Connection:
    """Asks from one place. Its clients are made when they are needed, and anew when their credentials are no good.

    What changes something is sent only while `may_change()` holds, which is asked in threads.
    """

    def __init__(
        self, place: Place, endpoints: AwsEndpoints, threads: Threads, may_change: Callable[[], bool] = always
    ) -> None:
        self.place = place
        self._endpoints = endpoints
        self._threads = threads
        self._may_change = may_change
        self._forgot_at = float("-inf")
        # An upload takes as long as its bucket's region is away: training jobs are looked at meanwhile.
        self._s3_threads = Threads()
        # Of the threads: a client must be made once, and botocore's sessions mustn't be shared while they make one.
        self._making = threading.Lock()
        self._session: Session | None = None
        self._clients: dict[Service, BaseClient] = {}

    async def ask(self, service: Service, operation: str, request: Mapping[str, object]) -> Answer:
        """What is answered to `operation` (as in the API: `ListTags`). Raises AwsError. Repeats nothing."""
        threads = self._s3_threads if service == "s3" else self._threads
        now = asyncio.get_running_loop().time()
        return await threads.run(lambda: self._ask(service, operation, request, now))

    def close(self) -> None:
        """Close all connections."""
        self._s3_threads.close()
        with self._making:
            for client in self._clients.values():
                client.close()

    def _ask(self, service: Service, operation: str, request: Mapping[str, object], now: float) -> Answer:
        try:
            client = self.client(service)
            answer: Answer = getattr(client, xform_name(operation))(**request)
        except _MayNotChange as error:
            raise Unavailable(f"{operation} was not sent: this operator doesn't hold the Lease") from error
        except (BotoCoreError, ClientError) as error:
            value = classified(error, service, operation, self.place)
            if isinstance(value, NoCredentials | ExpiredCredentials):
                self._forget(now)
            raise value from error
        return answer

    def client(self, service: Service) -> BaseClient:
        """botocore's own, for what takes more than one request. Blocks: for threads only. Raises botocore's errors."""
        with self._making:
            if service not in self._clients:
                self._clients[service] = self._new_client(service)
            return self._clients[service]

    def _new_client(self, service: Service) -> BaseClient:
        if self._session is None:
            self._session = new_session(self.place, self._endpoints.sts, _CONFIG)
        url = getattr(self._endpoints, service)
        client = self._session.create_client(service, endpoint_url=url, config=_CONFIG)
        # The last moment: what comes before it, such as fetching credentials, may take long.
        client.meta.events.register_first("before-send", self._before_send)
        return client

    def _before_send(self, event_name: str, **_: object) -> None:
        operation = event_name.rpartition(".")[2]
        if not operation.startswith(_READING) and not self._may_change():
            raise _MayNotChange

    def _forget(self, now: float) -> None:
        # A client keeps what it found when it was made, even if it found nothing.
        with self._making:
            if 0 <= now - self._forgot_at < RENEW_SECONDS:
                return
            self._forgot_at = now
            self._session = None
            self._clients.clear()
