"""Watch the jobs of a namespace, or of all."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from dataclasses import dataclass, field

from muster.cli.jobs.api_problems import explain_list_error
from muster.cli.listing.rows import JobRow, read_row
from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS


@dataclass
class WatchedJobs:
    """The current jobs of `namespace` (None: of all), by namespace and name. `problem` is why they may be outdated."""

    client: Client
    namespace: str | None
    rows: dict[tuple[str, str], JobRow] = field(default_factory=dict)
    problem: str = ""
    _version: str = ""

    async def load(self) -> None:
        """Read all jobs. Raises `ApiError`."""
        listing = await self.client.list(JOBS, self.namespace)
        rows = [read_row(item) for item in listing.items]
        self.rows = {(row.namespace, row.name): row for row in rows}
        self._version = listing.resource_version

    async def follow(self) -> None:
        """Follow the changes since `load`, until cancelled. While the API server fails, retry."""
        failures = 0
        while True:
            try:
                if not self._version:
                    await self.load()
                self.problem = ""
                await self._watch()
                failures = 0
            except ApiError as error:
                self._version = ""
                if not error.is_gone:
                    self.problem = explain_list_error(error)
                # Not for cryptography: the jitter spreads the clients' requests.
                await asyncio.sleep(compute_backoff_seconds(failures, error, random.random()))  # noqa: S311
                failures += 1

    async def _watch(self) -> None:
        async with aclosing(self.client.watch(JOBS, self.namespace, resource_version=self._version)) as changes:
            async for change in changes:
                metadata = change.object.get("metadata")
                version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
                self._version = version if isinstance(version, str) else self._version
                if change.type == "BOOKMARK":
                    continue
                row = read_row(change.object)
                self.rows.pop((row.namespace, row.name), None)
                if change.type != "DELETED":
                    self.rows[row.namespace, row.name] = row
