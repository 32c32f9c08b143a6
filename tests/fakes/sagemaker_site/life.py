"""Jobs with one operator, from their start to their end, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from fakes.sagemaker_site.site import Site, Wire
from support import virtual_time

ANSWER_SECONDS = 0.05
"""The time in which a service responds."""

Life = Callable[[Site], Awaitable[None]]


def run_scenario(wire: Wire, life: Life) -> None:
    """Run a scenario with an operator that allows jobs all buckets and roles."""
    run_scenario_on(partial(Site, wire), life)


def run_scenario_on(site_of: Callable[[], Site], life: Life) -> None:
    """Run a scenario on a site that is created when virtual time has started."""

    async def run() -> None:
        site = site_of()
        site.begin()
        try:
            await life(site)
        finally:
            await site.close()

    virtual_time.run(run(), lambda: ANSWER_SECONDS)
