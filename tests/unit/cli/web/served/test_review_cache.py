"""Answers that are kept for seconds."""

import asyncio

import pytest

from muster.cli.web.served.review_cache import ReviewCache


class Site:
    """A cache of ten seconds and two entries, its clock, and what was asked."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked: list[str] = []
        self.cache: ReviewCache[str, str] = ReviewCache(10.0, 2, lambda: self.now)

    async def get(self, key: str) -> str:
        async def ask() -> str:
            self.asked.append(key)
            await asyncio.sleep(0)
            if key == "broken":
                raise ValueError(key)
            return key.upper()

        return await self.cache.get(key, ask)


async def test_an_answer_is_kept_for_its_time() -> None:
    site = Site()
    assert await site.get("a") == "A"
    site.now += 9.9
    assert await site.get("a") == "A"
    assert site.asked == ["a"]
    site.now += 0.1
    assert await site.get("a") == "A"
    assert site.asked == ["a", "a"]


async def test_the_oldest_answer_makes_room() -> None:
    site = Site()
    for key in ("a", "b", "c", "b", "a"):
        await site.get(key)
    assert site.asked == ["a", "b", "c", "a"]
    assert len(site.cache) == 2


async def test_requests_at_the_same_time_share_a_question_and_its_error() -> None:
    site = Site()
    assert set(await asyncio.gather(site.get("a"), site.get("a"))) == {"A"}
    failed = await asyncio.gather(site.get("broken"), site.get("broken"), return_exceptions=True)
    assert [type(each) for each in failed] == [ValueError, ValueError]
    assert site.asked == ["a", "broken"]
    with pytest.raises(ValueError, match="broken"):
        await site.get("broken")
    assert site.asked == ["a", "broken", "broken"]


async def test_a_request_that_ends_leaves_the_question_to_others() -> None:
    site = Site()
    first = asyncio.create_task(site.get("a"))
    second = asyncio.create_task(site.get("a"))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "A"
    assert site.asked == ["a"]
