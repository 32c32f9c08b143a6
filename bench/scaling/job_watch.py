"""Watches the statuses of muster's jobs at the API server."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scaling.api import Api

Condition = Callable[[Any], bool]
"""Whether a status, which is {} before the first write, is as expected."""


@dataclass
class JobWatch:
    """The newest status of each job, the waiters for a status, and each job's phases since `phases` was cleared."""

    statuses: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, set[str]] = field(default_factory=dict)
    changes: int = 0
    _waiters: dict[str, list[tuple[Condition, asyncio.Future[float]]]] = field(default_factory=dict)

    async def watch(self, api: Api, namespace: str) -> None:
        """Follow the jobs until cancelled."""
        path = f"/apis/muster.dev/v1alpha1/namespaces/{namespace}/distributedtrainingjobs?watch=1&timeoutSeconds=1800"
        async for change in api.follow(path):
            self._record(change["object"])

    async def wait(self, name: str, condition: Condition) -> float:
        """Wait until the job's status fulfils the condition. Return when this process has seen it (monotonic)."""
        if condition(self.statuses.get(name, {})):
            return time.monotonic()
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(name, []).append((condition, future))
        return await future

    async def wait_for_all(self, names: list[str], condition: Condition, seconds: float) -> list[float]:
        """Wait until all jobs' statuses fulfil the condition. Return the times. Raises `TimeoutError`."""
        async with asyncio.timeout(seconds):
            return list(await asyncio.gather(*(self.wait(name, condition) for name in names)))

    def _record(self, job: Any) -> None:
        now, name, status = time.monotonic(), job["metadata"]["name"], job.get("status", {})
        self.statuses[name] = status
        self.phases.setdefault(name, set()).add(status.get("phase", ""))
        self.changes += 1
        remaining = []
        for condition, future in self._waiters.pop(name, ()):
            if not condition(status):
                remaining.append((condition, future))
            elif not future.done():
                future.set_result(now)
        if remaining:
            self._waiters[name] = remaining


def all_ranks_run(status: Any) -> bool:
    """Whether the status says that all ranks run."""
    ranks = status.get("ranks")
    return status.get("phase") == "Running" and ranks is not None and ranks["running"] == ranks["world"]


def shows_failure(status: Any) -> bool:
    """Whether the status says that the attempt has failed."""
    return status.get("phase") in ("Stopping", "Restarting", "Failed")


def is_failed(status: Any) -> bool:
    """Whether the condition Failed is True."""
    return any(each["type"] == "Failed" and each["status"] == "True" for each in status.get("conditions", ()))
