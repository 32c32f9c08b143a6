"""Keep the webhook's caBundle up to date, so that the API server trusts the webhook's certificate.

The bundle contains a new certificate authority for a day before it signs, and an old one until it expires.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_mappings
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Kind, Object

CHECK_SECONDS = 60.0
"""The interval of checks: an upgrade of the chart may restore the original bundle."""

_log = logging.getLogger(__name__)


@dataclass
class CaBundleUpdater:
    """Writes `bundle` (PEM) into all webhooks of the configuration `name` of a kind, if that exists."""

    client: Client
    kind: Kind
    name: str
    bundle: Callable[[], str]
    _last_problem: str = ""

    async def run(self) -> None:
        """Check at intervals, until cancelled.

        Logs each problem once. Without the bundle, the API server stores jobs without calling the webhook.
        """
        while True:
            try:
                await self.update_if_changed()
                self._last_problem = ""
            except ApiError as error:
                # If the configuration doesn't exist, another tool manages the webhook.
                if not error.is_not_found:
                    self._log_once(str(error))
            await asyncio.sleep(CHECK_SECONDS)

    async def update_if_changed(self) -> None:
        """Check once, and update the configuration if necessary. Raises `ApiError`."""
        configuration = await self.client.get(self.kind, None, self.name)
        new_configuration = set_ca_bundle(configuration, self.bundle())
        if new_configuration == configuration:
            return
        try:
            await self.client.replace(self.kind, None, self.name, new_configuration)
        except ApiError as error:
            # Another client has changed the configuration: the next check reads it again.
            if not error.is_conflict:
                raise

    def _log_once(self, text: str) -> None:
        if text != self._last_problem:
            self._last_problem = text
            _log.warning("%s %s: the caBundle could not be updated: %s", self.kind.name, self.name, text)


def set_ca_bundle(configuration: Object, bundle: str) -> Object:
    """Return the configuration with this bundle in each webhook."""
    encoded = base64.b64encode(bundle.encode()).decode("ascii")
    webhooks: list[JSON] = [
        {**webhook, "clientConfig": {**read_mapping(webhook.get("clientConfig")), "caBundle": encoded}}
        for webhook in read_mappings(configuration.get("webhooks"))
    ]
    return {**configuration, "webhooks": webhooks}
