"""The validating webhook: kopf's admission, in its own thread. Every replica serves it.

It reports the problems of a job before the job is stored. The operator would report the same problems later.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import kopf

from muster.api.field_problems import FieldProblem
from muster.api.names import GROUP, PLURAL, VERSION
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.clients.kubernetes.access import find_cluster
from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.controller.backends import get_warnings
from muster.controller.watch.kopf_operator import KopfRunner, make_registry, make_settings
from muster.controller.webhook.review import find_problems, make_denial_message
from muster.controller.webhook.server import BUSY_WARNING, WebhookServer, add_problems

AcceptJob = Callable[[Job, Status], None]
"""Raises `InvalidResource` for a job that this operator's configuration doesn't allow."""

UNPROCESSABLE = 422

_log = logging.getLogger(__name__)


@dataclass
class Webhook:
    """Serves the webhook until stopped. `jitter` returns a random number from 0 to 1."""

    server: WebhookServer
    accept: AcceptJob
    jitter: Callable[[], float]
    _kopf: KopfRunner = field(default_factory=KopfRunner)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        # A daemon thread doesn't keep the process from exiting.
        self._thread = threading.Thread(target=self._run_thread, name="webhook", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the thread clean up and end."""
        self._kopf.stop()

    def _run_thread(self) -> None:
        failures = 0
        while not self._kopf.stop_requested.is_set():
            try:
                asyncio.run(self._kopf.run(_make_registry(self.accept), _make_settings(self.server)))
            except Exception as problem:  # noqa: BLE001 - kopf raises any error of its tasks
                _log.warning("the webhook failed, and muster restarts it: %s: %s", type(problem).__name__, problem)
            failures += 1
            self._kopf.stop_requested.wait(compute_backoff_seconds(failures, None, self.jitter()))


def _make_registry(accept: AcceptJob) -> kopf.OperatorRegistry:
    registry = make_registry(_login)

    async def review_job(*, warnings: list[str], **review: Any) -> None:
        problems = _find_problems(review["new"], review["old"], accept, warnings)
        if problems:
            add_problems(problems)
            raise kopf.AdmissionError(make_denial_message(problems), UNPROCESSABLE)

    kopf.on.validate(GROUP, VERSION, PLURAL, id="jobs", operations=("CREATE", "UPDATE"), registry=registry)(review_job)
    return registry


def _find_problems(
    new: Mapping[str, Any], old: Mapping[str, Any] | None, accept: AcceptJob, warnings: list[str]
) -> tuple[FieldProblem, ...]:
    def accept_with_warnings(job: Job, status: Status) -> None:
        accept(job, status)
        warnings.extend(get_warnings(job))

    try:
        return find_problems(dict(new), None if old is None else dict(old), accept_with_warnings)
    except Exception:  # noqa: BLE001 - a bug must not block a job, which the operator validates later
        _log.exception("a job could not be reviewed before it was stored")
        warnings.append(BUSY_WARNING)
        return ()


def _make_settings(server: WebhookServer) -> kopf.OperatorSettings:
    settings = make_settings()
    # Otherwise the kopf of each replica would overwrite the webhook's configuration, and clear it at its end.
    settings.admission.managed = None
    settings.admission.server = server
    return settings


async def _login(**_: Any) -> kopf.ConnectionInfo:
    """Connect to the same cluster as `muster.clients.kubernetes.client`."""
    access = await find_cluster(None)
    try:
        configuration = access.configuration
        header = await configuration.get_api_key_with_prefix("BearerToken")
        scheme, _blank, token = (header or "").rpartition(" ")
        return kopf.ConnectionInfo(
            server=access.url,
            ca_path=configuration.ssl_ca_cert,
            insecure=not configuration.verify_ssl,
            username=configuration.username or None,
            password=configuration.password or None,
            scheme=scheme or None,
            token=token or None,
            certificate_path=configuration.cert_file,
            private_key_path=configuration.key_file,
        )
    finally:
        await access.close()
