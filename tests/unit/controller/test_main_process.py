"""The main process as its elector observes it: alive, busy, hung, paused or dead."""

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from muster.controller.leader.elector import STUCK_SECONDS, MainProcess, is_stopped
from muster.controller.leader.messages import Heartbeat, LeaseState, decode_lease_state, encode_message
from support.clock import Clock


@contextmanager
def pipe() -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs:
        yield ours, theirs


async def test_it_is_fit_while_it_shows_that_its_loop_goes_on() -> None:
    clock = Clock(100.0)
    with pipe() as (ours, theirs):
        main = MainProcess(theirs, os.getpid(), clock)
        assert main.get_readiness_failures() == ("the operator is still starting",)
        ours.send_bytes(encode_message(Heartbeat((), (), stage="candidate")))
        await main.is_candidate.wait()
        clock.now += STUCK_SECONDS
        assert (main.is_healthy(), main.get_liveness_failures(), main.get_readiness_failures()) == (True, (), ())
        clock.now += 1.0
        assert not main.is_healthy()
        assert main.get_liveness_failures() == ("the operator's event loop has been stuck for 31 s",)
        ours.send_bytes(encode_message(Heartbeat(("nobody tells of jobs",), (), stage="candidate")))
        main._on_readable()
        assert (main.is_healthy(), main.get_liveness_failures()) == (True, ("nobody tells of jobs",))
        ours.send_bytes(encode_message(Heartbeat((), (), stage="leaving")))
        main._on_readable()
        assert (main.is_healthy(), main.is_leaving) == (False, True)


async def test_it_gets_each_change_of_the_lease_once() -> None:
    with pipe() as (ours, theirs):
        main = MainProcess(theirs, os.getpid(), Clock(100.0))
        for _ in range(2):
            main.send_state(float("-inf"), "another")
        main._leader_term = 7
        main.send_state(107.0, "us")
        main.send_state(float("-inf"), None)
        value = [decode_lease_state(ours.recv_bytes()) for _ in range(3)]
        assert value == [LeaseState(None, float("-inf"), "another"), LeaseState(7, 107.0, "us"), LeaseState()]
        assert not ours.poll(0)


async def test_it_has_ended_when_its_end_of_the_connection_is_closed() -> None:
    with pipe() as (ours, theirs):
        main = MainProcess(theirs, os.getpid(), Clock(100.0))
        ours.close()
        await main.has_ended.wait()


def test_a_stopped_process_differs_from_a_running_one() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            assert not is_stopped(process.pid)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            assert is_stopped(process.pid)
        finally:
            process.kill()
    assert not is_stopped(process.pid)
