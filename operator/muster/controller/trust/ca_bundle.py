"""Keep the webhook's caBundle up to date: the API server trusts the collector's certificate authorities.

The bundle contains a new authority a day before its first signature, and an old one until it expires. So it always
contains the authority of the current certificate.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import mapping, objects
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import VALIDATING_WEBHOOKS, Object

CHECK_SECONDS = 60.0
"""The check interval: an upgrade of the chart may restore the original bundle."""

_log = logging.getLogger(__name__)


@dataclass
class CaBundle:
    """Keeps `bundle` (PEM) in all webhooks of the ValidatingWebhookConfiguration `name`, if that exists."""

    client: Client
    name: str
    bundle: Callable[[], str]
    _last_problem: str = ""

    async def run(self) -> None:
        """Check at intervals, until cancelled.

        Logs each problem once: without the bundle, jobs are stored without a review.
        """
        while True:
            try:
                await self.keep()
                self._last_problem = ""
            except ApiError as error:
                # Without the configuration, another tool manages the webhook and its authority.
                if not error.is_not_found:
                    self._log_once(str(error))
            await asyncio.sleep(CHECK_SECONDS)

    async def keep(self) -> None:
        """Check once, and update the configuration if necessary. Raises `ApiError`."""
        stored = await self.client.get(VALIDATING_WEBHOOKS, None, self.name)
        wanted = with_ca_bundle(stored, self.bundle())
        if wanted == stored:
            return
        try:
            await self.client.replace(VALIDATING_WEBHOOKS, None, self.name, wanted)
        except ApiError as error:
            # Another replica, or an upgrade, has changed it: the next check reads the result.
            if not error.is_conflict:
                raise

    def _log_once(self, text: str) -> None:
        if text != self._last_problem:
            self._last_problem = text
            _log.warning("ValidatingWebhookConfiguration %s: the caBundle could not be updated: %s", self.name, text)


def with_ca_bundle(configuration: Object, bundle: str) -> Object:
    """Return the configuration with this bundle in each webhook."""
    encoded = base64.b64encode(bundle.encode()).decode("ascii")
    webhooks: list[JSON] = [
        {**webhook, "clientConfig": {**mapping(webhook.get("clientConfig")), "caBundle": encoded}}
        for webhook in objects(configuration.get("webhooks"))
    ]
    return {**configuration, "webhooks": webhooks}
