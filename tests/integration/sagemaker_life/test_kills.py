"""The operator is killed at each call to the API server and to AWS: before it is carried out, and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from fakes.sagemaker_service.faults import Fault, share
from fakes.sagemaker_site.site import Fate, Site, Wire
from integration.sagemaker_life.lives import LIVES, Ending, Life, ending, wrongs
from support import virtual_time

SETTLE_SECONDS = 400.0
"""After all is over: what would come afterwards had time to."""

LISTS = 3
"""Listings go on for ever: a kill at one of the first is a kill at any."""

MISSED = 4

FAILING = 0.25
"""So many of AWS' answers."""


@dataclass(frozen=True)
class Lived:
    """What one life came to."""

    ending: Ending
    wrongs: list[str]
    calls: list[str]
    deaths: int


def live(
    wire: Wire, life: Life, fate: Callable[[str], Fate], mishap: Callable[[str], Fault | None] = lambda _: None
) -> Lived:
    """Live it, in virtual time; `mishap` is asked what befalls each request to AWS."""

    async def run() -> Lived:
        site = Site(wire, fate)
        site.service.faults.chance = mishap
        site.begin()
        try:
            await life.begin(site)
            await life.acts(site)
            await site.until(lambda: life.is_over(site))
            await site.until_settled(SETTLE_SECONDS)
            return Lived(ending(site), wrongs(site), site.calls, site.deaths)
        finally:
            await site.close()

    return virtual_time.run(run(), lambda: 0.05)


@dataclass
class AtCall:
    """Kill at the nth call that does this."""

    what: str
    nth: int
    fate: Fate
    _count: int = 0

    def __call__(self, what: str) -> Fate:
        self._count += what == self.what
        return self.fate if (what, self._count) == (self.what, self.nth) else "pass"


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_a_killed_operator_costs_nothing(wire: Wire, life: Life) -> None:
    clean = live(wire, life, lambda _: "pass")
    assert clean.wrongs == []
    steps = [(what, clean.calls[: index + 1].count(what)) for index, what in enumerate(clean.calls)]
    result, missed = {}, 0
    for what, nth in steps:
        if what == "ListTrainingJobs" and nth > LISTS:
            continue
        for fate in ("before", "after"):
            lived = live(wire, life, AtCall(what, nth, fate))
            wrong = [*lived.wrongs, *([] if lived.ending == clean.ending else [f"{lived.ending}\nnot {clean.ending}"])]
            # A step of the undisturbed run may not occur twice in another one, such as an event.
            missed += lived.deaths == 0
            if wrong:
                result[what, nth, fate] = wrong
    assert missed <= MISSED
    assert not result, "\n".join(f"{step}: {wrong}" for step, wrong in result.items())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_answers_that_do_not_come_cost_nothing(wire: Wire, life: Life, seed: int) -> None:
    clean = live(wire, life, lambda _: "pass")
    kinds = (Fault.FAIL, Fault.FAIL_AFTER, Fault.DROP, Fault.DROP_AFTER, Fault.THROTTLE)
    lived = live(wire, life, lambda _: "pass", share(FAILING, seed, *kinds))
    assert lived.wrongs == []
    # A temporary failure of AWS may be reported.
    assert replace(lived.ending, events=frozenset()) == replace(clean.ending, events=frozenset())
