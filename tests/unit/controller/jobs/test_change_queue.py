"""Changes of resources wait in a queue, and no namespace delays another."""

import asyncio
from typing import Literal

import pytest

from muster.clients.kubernetes.client import Change
from muster.controller.jobs.change_queue import ChangeQueue
from muster.controller.jobs.processor_queue import ProcessorQueue


class Reader:
    """Reads each resource in a second of its processor time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.read: list[tuple[str, str, str]] = []

    def __call__(self) -> float:
        return self.now

    def hear(self, change: Change) -> None:
        metadata = change.object["metadata"]
        assert isinstance(metadata, dict)
        if metadata["uid"] == "bad":
            raise RuntimeError("a mistake")
        self.now += 1.0
        self.read.append((change.type, str(metadata["uid"]), str(metadata["resourceVersion"])))


def _change(kind: Literal["ADDED", "MODIFIED", "DELETED"], namespace: str, uid: str, version: int = 1) -> Change:
    return Change(kind, {"metadata": {"namespace": namespace, "uid": uid, "resourceVersion": str(version)}})


async def _read_all(reader: Reader, count: int) -> None:
    for _ in range(10 * count):
        await asyncio.sleep(0)
    assert len(reader.read) == count


async def test_namespaces_take_turns() -> None:
    reader = Reader()
    inbox = ChangeQueue(ProcessorQueue(reader), reader.hear)
    for number in range(50):
        inbox.put(_change("ADDED", "many", f"m{number}"))
    inbox.put(_change("ADDED", "few", "f"))
    await _read_all(reader, 51)
    assert [uid for _, uid, _ in reader.read].index("f") <= 2
    assert [uid for _, uid, _ in reader.read if uid != "f"] == [f"m{number}" for number in range(50)]


async def test_others_have_the_loop_between_two_of_them() -> None:
    reader = Reader()
    inbox = ChangeQueue(ProcessorQueue(reader), reader.hear)
    for number in range(20):
        inbox.put(_change("ADDED", "many", f"m{number}"))
    most, before = 0, 0
    for _ in range(200):
        await asyncio.sleep(0)
        most, before = max(most, len(reader.read) - before), len(reader.read)
    assert (most, before) == (1, 20)


async def test_of_a_resource_only_the_newest_waits() -> None:
    reader = Reader()
    inbox = ChangeQueue(ProcessorQueue(reader), reader.hear)
    for change in (
        _change("ADDED", "team", "a", 1),
        _change("ADDED", "team", "b", 2),
        _change("MODIFIED", "team", "a", 3),
        _change("MODIFIED", "team", "b", 4),
        _change("DELETED", "team", "b", 5),
    ):
        inbox.put(change)
    await _read_all(reader, 2)
    assert reader.read == [("ADDED", "a", "3"), ("DELETED", "b", "5")]


async def test_what_cannot_be_read_keeps_nothing_waiting(caplog: pytest.LogCaptureFixture) -> None:
    reader = Reader()
    inbox = ChangeQueue(ProcessorQueue(reader), reader.hear)
    inbox.put(_change("ADDED", "team", "bad"))
    inbox.put(_change("ADDED", "team", "good"))
    await _read_all(reader, 1)
    assert "a job of namespace team could not be read" in caplog.text
    inbox.put(_change("ADDED", "team", "later"))
    await _read_all(reader, 2)


async def test_nothing_is_read_after_the_end() -> None:
    reader = Reader()
    inbox = ChangeQueue(ProcessorQueue(reader), reader.hear)
    inbox.put(_change("ADDED", "team", "a"))
    inbox.close()
    for _ in range(5):
        await asyncio.sleep(0)
    assert reader.read == []
