"""The operator is killed at each call to the API server and to AWS: before it is executed, and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from fakes.sagemaker_service.faults import Fault, share
from fakes.sagemaker_site.site import Fate, Site, Wire
from integration.sagemaker_life.lives import LIVES, Ending, Life, ending, wrongs
from support import virtual_time

SETTLE_SECONDS = 400.0
"""The time after the end in which late effects would occur."""

LISTS = 3
"""Lists are endless: a kill at one of the first is a kill at any."""

MISSED = 4

FATES: tuple[Fate, ...] = ("before", "after")

FAILING = 0.25
"""This share of AWS' answers."""


@dataclass(frozen=True)
class Lived:
    """The result of one scenario."""

    ending: Ending
    wrongs: list[str]
    calls: list[str]
    deaths: int


def live(
    wire: Wire, life: Life, fate: Callable[[str], Fate], mishap: Callable[[str], Fault | None] = lambda _: None
) -> Lived:
    """Run it in virtual time; `mishap` returns what happens to each request to AWS."""

    async def run() -> Lived:
        site = Site(wire, fate)
        site.service.faults.chance = mishap
        site.begin()
        try:
            await life.begin(site)
            await life.acts(site)
            await site.wait_until(lambda: life.is_over(site))
            await site.wait_until_settled(SETTLE_SECONDS)
            return Lived(ending(site), wrongs(site), site.calls, site.deaths)
        finally:
            await site.close()

    return virtual_time.run(run(), lambda: 0.05)


@dataclass
class AtCall:
    """Kill at the nth call of this kind."""

    what: str
    nth: int
    fate: Fate
    _count: int = 0

    def __call__(self, what: str) -> Fate:
        self._count += what == self.what
        return self.fate if (what, self._count) == (self.what, self.nth) else "pass"


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_an_operator_killed_before_or_after_each_call_costs_nothing(wire: Wire, life: Life) -> None:
    """Before one call, and after the fifth one after it. `make test-long` kills before and after each call."""
    kill_at_each_call(wire, life, lambda number: () if number % 5 else (FATES[number // 5 % 2],))


@pytest.mark.long
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_an_operator_killed_before_and_after_each_call_costs_nothing(wire: Wire, life: Life) -> None:
    kill_at_each_call(wire, life, lambda _: FATES)


def kill_at_each_call(wire: Wire, life: Life, fates_at: Callable[[int], Sequence[Fate]]) -> None:
    """Live once undisturbed, and then once for each call and each of its fates."""
    clean = live(wire, life, lambda _: "pass")
    assert clean.wrongs == []
    steps = [(what, clean.calls[: index + 1].count(what)) for index, what in enumerate(clean.calls)]
    result, missed = {}, 0
    for number, (what, nth) in enumerate(steps):
        if what == "ListTrainingJobs" and nth > LISTS:
            continue
        for fate in fates_at(number):
            lived = live(wire, life, AtCall(what, nth, fate))
            wrong = [*lived.wrongs, *([] if lived.ending == clean.ending else [f"{lived.ending}\nnot {clean.ending}"])]
            # A step of the undisturbed run, such as an event, may be missing in another one.
            missed += lived.deaths == 0
            if wrong:
                result[what, nth, fate] = wrong
    assert missed <= MISSED
    assert not result, "\n".join(f"{step}: {wrong}" for step, wrong in result.items())


@pytest.mark.parametrize(("seed", "life"), list(enumerate(LIVES)), ids=[life.name for life in LIVES])
def test_answers_that_do_not_come_cost_nothing(wire: Wire, life: Life, seed: int) -> None:
    clean = live(wire, life, lambda _: "pass")
    kinds = (Fault.FAIL, Fault.FAIL_AFTER, Fault.DROP, Fault.DROP_AFTER, Fault.THROTTLE)
    lived = live(wire, life, lambda _: "pass", share(FAILING, seed, *kinds))
    assert lived.wrongs == []
    # A temporary failure of AWS may be reported.
    assert replace(lived.ending, events=frozenset()) == replace(clean.ending, events=frozenset())
