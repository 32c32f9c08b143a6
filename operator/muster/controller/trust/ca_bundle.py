"""Whom the API server trusts as muster's webhook: the collector's authorities, in the chart's configuration of it.

A new authority stands there for a day before it signs, and an old one until it ends: no certificate is ever unknown.
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

LOOK_SECONDS = 60.0
"""Between two looks: an upgrade of the chart may put back what it once installed."""

_log = logging.getLogger(__name__)


@dataclass
class CaBundle:
    """Keeps `bundle` (PEM) in every webhook of the ValidatingWebhookConfiguration `name`, if there is one."""

    client: Client
    name: str
    bundle: Callable[[], str]
    _complaint: str = ""

    async def run(self) -> None:
        """Look again and again, for ever. Problem is logged once: without the bundle jobs are stored unlooked at."""
        while True:
            try:
                await self.keep()
                self._complaint = ""
            except ApiError as error:
                # Without one, another tool registered the webhook and its certificate authority.
                if not error.is_not_found:
                    self._complain(str(error))
            await asyncio.sleep(LOOK_SECONDS)

    async def keep(self) -> None:
        """One look. Raises `ApiError`."""
        stored = await self.client.get(VALIDATING_WEBHOOKS, None, self.name)
        wanted = with_bundle(stored, self.bundle())
        if wanted == stored:
            return
        try:
            await self.client.replace(VALIDATING_WEBHOOKS, None, self.name, wanted)
        except ApiError as error:
            # Another replica was quicker, or the chart: the next look shows it.
            if not error.is_conflict:
                raise

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._complaint = text
            _log.warning("ValidatingWebhookConfiguration %s doesn't get the webhook's authority: %s", self.name, text)


def with_bundle(configuration: Object, bundle: str) -> Object:
    """The configuration with this bundle in each of its webhooks."""
    encoded = base64.b64encode(bundle.encode()).decode("ascii")
    webhooks: list[JSON] = [
        {**webhook, "clientConfig": {**mapping(webhook.get("clientConfig")), "caBundle": encoded}}
        for webhook in objects(configuration.get("webhooks"))
    ]
    return {**configuration, "webhooks": webhooks}
