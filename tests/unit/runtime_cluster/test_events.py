"""Events about jobs: told once, whoever tells them, and never in a status' way."""

import asyncio
from contextlib import suppress
from pathlib import Path

from muster.api.status import Condition, Status
from muster.runtime.cluster.events import MAX_MESSAGE_CHARS, EventPoster, event
from muster.runtime.cluster.resource import read_resource
from muster.status.events import Note
from unit.runtime_cluster.api_server import ApiServer, failure, served
from unit.runtime_cluster.cluster_resources import CREATED, resource

VIT = read_resource(resource())
NOTE = Note("Warning", "Failed", "Rank 3 on vit-1 ended with exit code 1")
NOW = 1_763_697_900.0


def failed(message: str) -> Status:
    condition = Condition(
        type="Failed", status="True", reason="RankFailed", message=message, last_transition_time=CREATED
    )
    return Status(phase="Failed", message=message, conditions=(condition,))


def test_an_event_says_whose_it_is_and_when() -> None:
    told = event(VIT, Status(), NOTE, "pod-1", NOW)
    assert told["involvedObject"] == {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "namespace": "team",
        "name": "vit",
        "uid": "u-1",
        "resourceVersion": "100",
    }
    assert (told["type"], told["reason"], told["message"]) == ("Warning", "Failed", NOTE.message)
    assert told["firstTimestamp"] == told["lastTimestamp"] == "2025-11-21T04:05:00Z"


def test_the_same_event_has_the_same_name_whoever_tells_it_and_when() -> None:
    names = {
        str(event(VIT, Status(incarnation=incarnation), note, who, at)["metadata"])
        for incarnation, note, who, at in (
            (1, NOTE, "pod-1", NOW),
            (1, NOTE, "pod-2", NOW + 60),
            (2, NOTE, "pod-1", NOW),
            (1, Note("Warning", "Failed", "another"), "pod-1", NOW),
        )
    }
    assert len(names) == 3


def test_a_message_is_as_long_as_the_api_server_takes() -> None:
    told = event(VIT, Status(), Note("Normal", "Started", "x" * 5000), "pod-1", NOW)
    assert len(str(told["message"])) == MAX_MESSAGE_CHARS


async def test_an_event_that_is_there_or_is_refused_holds_nobody_up(tmp_path: Path) -> None:
    server = ApiServer(None)
    server.mishaps += [lambda _: failure(403, "Forbidden", "no events here")]
    async with served(server, tmp_path) as client:
        poster = EventPoster(client, "pod-1", lambda: NOW)
        for message in ("first", "second", "second", "third"):
            poster.tell(VIT, Status(), failed(message))
        work = asyncio.create_task(poster.run())
        await server.until_created(2)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    assert [one["message"] for one in server.created] == ["second", "third"]
