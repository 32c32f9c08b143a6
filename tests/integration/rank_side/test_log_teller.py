"""The log lines about a running rank, with a real rank."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster_worker.contract import log_line
from muster_worker.contract.log_line import RankLine
from muster_worker.rank import hook_environment, progress_file
from muster_worker.rank_group import progress
from muster_worker.sagemaker.log_rank.host_rank import RankPosition
from muster_worker.sagemaker.log_rank.output_relay import Relay
from muster_worker.sagemaker.log_rank.reporter import FIRST_INTERVAL_SECONDS, LogReporter
from support.agent_folder import share_agent_folder

SCRIPT = """
import sys
import muster_worker
def wait_for_data():
    sys.stdin.read(1)
muster_worker.report(step=3, loss=0.5)
wait_for_data()
muster_worker.report(step=4)
sys.stdin.read()
"""


class Rank:
    """A hooked rank, and its log lines."""

    def __init__(self, folder: Path) -> None:
        archive, self.progress = share_agent_folder(), folder / "progress"
        progress_file.create(str(self.progress))
        environment = hook_environment.add_hook({"PATH": os.environ["PATH"]}, str(archive), "rank")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            stdin=subprocess.PIPE,
            env={**environment, hook_environment.PROGRESS: str(self.progress)},
        )
        self._out, target = os.pipe()
        reader, writer = os.pipe()
        self._descriptors = [self._out, target, writer]
        position = RankPosition("algo-1", rank=1, local_rank=1, world=4, local_world=2)
        self.log_reporter = LogReporter(
            Relay([(reader, target)]), position, str(self.progress), self.process.pid, time.time(), stall_seconds=0.2
        )

    def tells(self) -> RankLine:
        self.log_reporter.tick()
        value = log_line.parse_line(os.read(self._out, 65536).decode())
        assert value is not None
        return value

    def until_step(self, step: int) -> None:
        until = time.monotonic() + 60
        while progress.read(str(self.progress)).step != step:
            assert time.monotonic() < until
            time.sleep(0.01)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        for descriptor in self._descriptors:
            os.close(descriptor)


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[Rank]:
    rank = Rank(tmp_path)
    yield rank
    rank.close()


def test_a_rank_that_stands_still_is_asked_where_it_is(rank: Rank) -> None:
    assert rank.tells().event == "started"
    rank.until_step(3)
    moved = rank.tells()
    assert (moved.event, moved.step, dict(moved.metrics)) == ("progress", 3, {"loss": 0.5})
    assert moved.stepped_at is not None
    time.sleep(max(0.0, moved.stepped_at + 0.3 - time.time()))
    assert rank.tells().activity == "<string>:5 in wait_for_data"
    assert rank.process.stdin is not None
    rank.process.stdin.write(b".")
    rank.process.stdin.flush()
    rank.until_step(4)
    again = rank.tells()
    assert (again.step, again.activity) == (4, None)


def test_the_pace_slows_down(rank: Rank) -> None:
    first = rank.log_reporter.tick()
    # ranks of a host don't print at the same time
    assert first == FIRST_INTERVAL_SECONDS * 1.5
    pauses = [rank.log_reporter.tick() for _ in range(4)]
    assert pauses == [10.0, 20.0, log_line.MIN_INTERVAL_SECONDS, log_line.MIN_INTERVAL_SECONDS]
