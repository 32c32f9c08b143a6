"""Work that is no longer needed ends at once."""

import asyncio

import pytest

from muster.backends.sagemaker.withdrawal import Withdrawal, WorkWithdrawn


async def test_what_is_under_way_is_given_up() -> None:
    withdrawal, ended = Withdrawal(), asyncio.Event()

    async def work() -> None:
        async with withdrawal.guard():
            try:
                await asyncio.sleep(1000)
            finally:
                ended.set()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    withdrawal.withdraw()
    async with asyncio.timeout(20):
        with pytest.raises(WorkWithdrawn):
            await task
    assert ended.is_set()


async def test_what_has_not_begun_does_not_begin() -> None:
    withdrawal = Withdrawal()
    withdrawal.withdraw()
    with pytest.raises(WorkWithdrawn):
        async with withdrawal.guard():
            raise AssertionError


async def test_what_is_done_is_left_alone() -> None:
    withdrawal = Withdrawal()
    async with withdrawal.guard():
        pass
    withdrawal.withdraw()


async def test_the_works_own_time_limit_is_its_own() -> None:
    with pytest.raises(TimeoutError):
        async with Withdrawal().guard(), asyncio.timeout(0):
            await asyncio.sleep(1)
