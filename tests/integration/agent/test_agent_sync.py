"""The agent and its sync server, which copies files from and to S3: requests before the ranks start and after they
end.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from muster_worker.contract.schema import AgentPhase, CommandKind, Report
from support.agent_world import AgentWorld


class SyncServer:
    """A sync server that answers when the test allows it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: Queue[str] = Queue()
        self.answers: Queue[bytes] = Queue()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def expect(self, request: str) -> None:
        assert self.asked.get(timeout=30) == request

    def answer(self, **value: str) -> None:
        self.answers.put(json.dumps(value).encode() + b"\n")

    def close(self) -> None:
        self.answers.put(b"")
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                asker = self._listener.accept()[0]
            except OSError:
                return
            with asker:
                self.asked.put(json.loads(asker.recv(1024))["ask"])
                try:
                    asker.sendall(self.answers.get())
                except BrokenPipeError:
                    continue


@pytest.fixture
def sync(world: AgentWorld) -> Iterator[SyncServer]:
    one = SyncServer(world.short / "sync.sock")
    yield one
    one.close()


def _start(world: AgentWorld, path: Path) -> None:
    world.start_agent(options=("--sync", str(path)))
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    world.send(CommandKind.START)


def _phase(name: str) -> Callable[[Report], bool]:
    return lambda report: report.phase == name


def test_ranks_start_when_snapshots_are_there_and_have_ended_when_results_are_kept(
    world: AgentWorld, sync: SyncServer
) -> None:
    world.make_plan(sys.executable, "-c", "print('trained')")
    _start(world, sync.path)
    sync.expect("refresh")
    report = world.wait(0, _phase(AgentPhase.RUNNING))
    assert report.ranks[0].started_age is None
    sync.answer()
    sync.expect("finish")
    report = world.wait(0, _phase(AgentPhase.UPLOADING))
    assert report.ranks[0].exit_code == 0
    sync.answer()
    assert world.wait_ended().problem is None


def test_what_can_not_be_kept_is_the_nodes_problem(world: AgentWorld, sync: SyncServer) -> None:
    world.make_plan(sys.executable, "-c", "")
    _start(world, sync.path)
    sync.answer()
    sync.answer(reason="S3AccessDenied", message="spec.output.s3: s3:PutObject is denied")
    report = world.wait_ended()
    assert report.problem is not None
    assert (report.problem.reason, report.ranks[0].exit_code) == ("S3AccessDenied", 0)


def test_without_the_newest_snapshots_no_rank_starts(world: AgentWorld, sync: SyncServer) -> None:
    world.make_plan(sys.executable, "-c", "print('trained')")
    _start(world, sync.path)
    sync.answer(reason="S3NotFound", message="spec.checkpoint.s3: the bucket does not exist")
    report = world.wait_ended()
    assert report.problem is not None
    assert (report.problem.reason, report.ranks[0].state) == ("S3NotFound", "Starting")
    assert "trained" not in world.log(0)


def test_a_stop_waits_for_what_ranks_left_and_a_kill_does_not(world: AgentWorld, sync: SyncServer) -> None:
    world.make_plan(sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
    _start(world, sync.path)
    sync.expect("refresh")
    sync.answer()
    world.wait_said(0, "up", 1)
    world.send(CommandKind.STOP, grace=5.0)
    sync.expect("finish")
    assert world.wait(0, _phase(AgentPhase.UPLOADING)).ranks[0].stopped
    world.send(CommandKind.KILL)
    assert world.wait_ended().problem is None


def test_a_node_that_is_taken_away_does_not_wait(world: AgentWorld, sync: SyncServer) -> None:
    world.make_plan(sys.executable, "-c", "")
    _start(world, sync.path)
    sync.expect("refresh")
    sync.answer()
    sync.expect("finish")
    world.wait(0, _phase(AgentPhase.UPLOADING))
    world.agents[0].terminate()
    assert world.wait_ended().ranks[0].exit_code == 0


def test_a_sync_that_falls_is_asked_again(world: AgentWorld, sync: SyncServer) -> None:
    world.make_plan(sys.executable, "-c", "")
    _start(world, sync.path)
    sync.expect("refresh")
    sync.answers.put(b"")
    sync.expect("refresh")
    sync.answers.put(b'{"reas')
    sync.expect("refresh")
    sync.answer()
    sync.expect("finish")
    sync.answer()
    assert world.wait_ended().problem is None


def test_a_sync_that_comes_late_is_waited_for(world: AgentWorld) -> None:
    path = world.short / "late.sock"
    world.make_plan(sys.executable, "-c", "")
    _start(world, path)
    assert world.wait(0, _phase(AgentPhase.RUNNING)).ranks[0].started_age is None
    sync = SyncServer(path)
    try:
        sync.answer()
        sync.answer()
        assert world.wait_ended().ranks[0].exit_code == 0
    finally:
        sync.close()
