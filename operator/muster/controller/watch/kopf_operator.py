"""The settings of muster's two kopf operators, and a way to stop kopf from another thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import kopf

REQUEST_SECONDS = 20.0
"""The timeout of kopf's requests to the API server."""

CLOSE_SECONDS = 0.1
"""The time in which the event loop closes kopf's TLS connections."""

ERROR_BACKOFFS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""The delays between kopf's own retries, in seconds. After the last retry kopf fails, and muster restarts it."""


@dataclass
class KopfRunner:
    """Runs kopf in the calling thread's event loop until `stop`, which any thread may call."""

    stop_requested: threading.Event = field(default_factory=threading.Event)
    _cancel: Callable[[], None] = lambda: None

    def stop(self) -> None:
        """End the current run, and each later run at once."""
        self.stop_requested.set()
        self._cancel()

    async def run(self, registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, *namespaces: str) -> None:
        """Run kopf for these namespaces; without any, for the whole cluster. Raises the errors of kopf's tasks."""
        # `stop` cancels kopf's task, because kopf needs five seconds to react to its own stop flag.
        work = asyncio.create_task(
            kopf.operator(
                registry=registry,
                settings=settings,
                standalone=True,
                clusterwide=not namespaces,
                namespaces=namespaces,
            )
        )
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            # The loop is closed once kopf has ended.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(work.cancel)

        self._cancel = cancel
        if self.stop_requested.is_set():
            work.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await work
        finally:
            await asyncio.sleep(CLOSE_SECONDS)


def make_registry(login: Callable[..., Awaitable[object]]) -> kopf.OperatorRegistry:
    """Return a registry with only the `login` handler."""
    registry = kopf.OperatorRegistry()
    # By default kopf waits a minute before it tries to log in again.
    kopf.on.login(registry=registry, errors=kopf.ErrorsMode.PERMANENT)(login)
    return registry


def make_settings() -> kopf.OperatorSettings:
    """Return the settings of every kopf operator of muster."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    # Scanning would need permission to list all namespaces and CRDs.
    settings.scanning.disabled = True
    settings.networking.request_timeout = REQUEST_SECONDS
    settings.networking.error_backoffs = ERROR_BACKOFFS
    # muster ends the process itself.
    settings.process.ultimate_exiting_timeout = None
    return settings
