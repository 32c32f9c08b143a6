"""Events about jobs: created once by any operator, and without delay of a status."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.api_server import ApiServer, make_failure, served
from muster.api.status.status import Condition, Status
from muster.api.timestamps import parse_timestamp
from muster.controller.status.events import EVENT_TTL_SECONDS, MAX_MESSAGE_CHARS, EventPoster, make_event
from muster.core.status.events import JobEvent
from muster.objects.kubernetes.resource import read_resource
from unit.controller.cluster_resources import CREATED, resource

VIT = read_resource(resource())
NOW = parse_timestamp(CREATED) + 60.0
NOTE = JobEvent("Warning", "Failed", "Rank 3 on vit-1 ended with exit code 1", CREATED)


def failed(message: str) -> Status:
    condition = Condition(
        type="Failed", status="True", reason="RankFailed", message=message, last_transition_time=CREATED
    )
    return Status(phase="Failed", message=message, conditions=(condition,))


def test_an_event_says_whose_it_is_and_when() -> None:
    value = make_event(VIT, NOTE, "pod-1", NOW)
    assert value["involvedObject"] == {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "namespace": "team",
        "name": "vit",
        "uid": "u-1",
        "resourceVersion": "100",
    }
    assert (value["type"], value["reason"], value["message"]) == ("Warning", "Failed", NOTE.message)
    assert value["firstTimestamp"] == value["lastTimestamp"] == "2026-11-21T04:06:19Z"


def test_the_same_event_always_has_the_same_name() -> None:
    again = replace(VIT, version="200", generation=2, status=failed("it went on"))
    names = {
        str(make_event(resource, note, who, at)["metadata"])
        for resource, note, who, at in (
            (VIT, NOTE, "pod-1", NOW),
            (again, NOTE, "pod-2", NOW + 60),
            (VIT, JobEvent("Warning", "Failed", NOTE.message, "2026-11-21T05:05:19Z"), "pod-1", NOW),
            (VIT, JobEvent("Warning", "Failed", "another", CREATED), "pod-1", NOW),
        )
    }
    assert len(names) == 3


def test_a_problem_that_comes_again_in_other_words_is_one_event() -> None:
    words = ("back-off 10s", "back-off 20s")
    problems = [JobEvent("Warning", "SidecarFailed", message, CREATED, deduplication_key="") for message in words]
    assert len({str(make_event(VIT, note, "pod-1", NOW)["metadata"]) for note in problems}) == 1


def test_a_message_is_as_long_as_the_api_server_takes() -> None:
    value = make_event(VIT, JobEvent("Normal", "Started", "x" * 5000, CREATED), "pod-1", NOW)
    assert len(str(value["message"])) == MAX_MESSAGE_CHARS


@asynccontextmanager
async def poster(server: ApiServer, folder: Path, now: float = NOW) -> AsyncIterator[EventPoster]:
    """Yield a publisher that sends."""
    async with served(server, folder) as client:
        posting = EventPoster(client, "pod-1", lambda: now, lambda: 0.0)
        work = asyncio.create_task(posting.run())
        try:
            yield posting
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work


async def test_an_existing_or_refused_event_delays_no_other(tmp_path: Path) -> None:
    server = ApiServer(None)
    server.mishaps += [lambda _: make_failure(403, "Forbidden", "no events here")]
    async with poster(server, tmp_path) as posting:
        for message in ("first", "second", "second", "third"):
            posting.post(VIT, Status(), failed(message))
        await server.wait_until_created(2)
    assert [one["message"] for one in server.created] == ["second", "third"]


@pytest.mark.parametrize("answer", [None, *((code, "Busy") for code in (409, 410, 429, 500, 503))])
async def test_an_event_that_is_not_taken_is_sent_again(tmp_path: Path, answer: tuple[int, str] | None) -> None:
    server = ApiServer(None)
    server.mishaps += [lambda _: None if answer is None else make_failure(*answer, "not now")] * 2
    async with poster(server, tmp_path) as posting:
        posting.post(VIT, Status(), failed("first"))
        await server.wait_until_created(1)
    assert [one["message"] for one in server.created] == ["first"]


async def test_the_next_leader_tells_what_the_one_before_it_did_not_come_to(tmp_path: Path) -> None:
    ended = replace(VIT, status=failed("Rank 0 failed"))
    server = ApiServer(None)
    async with poster(server, tmp_path) as posting:
        posting.post_missed(ended)
        posting.post(VIT, Status(), failed("news come first"))
        posting.post(ended, Status(), ended.status)
        await server.wait_until_created(2)
    assert [one["message"] for one in server.created] == ["news come first", "Rank 0 failed"]


@pytest.mark.parametrize("since", [CREATED, "yesterday"])
async def test_expired_events_are_not_created_again(tmp_path: Path, since: str) -> None:
    status = failed("long ago")
    old = status.model_copy(
        update={"conditions": (status.conditions[0].model_copy(update={"last_transition_time": since}),)}
    )
    server = ApiServer(None)
    async with poster(server, tmp_path, NOW + EVENT_TTL_SECONDS) as posting:
        posting.post_missed(replace(VIT, status=old))
        posting.post(VIT, Status(), failed("now"))
        await server.wait_until_created(1)
    assert [one["message"] for one in server.created] == ["now"]
