"""SIGKILL on a random rank among 3 x 2: the status names it within a second, in each repetition."""

import asyncio
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field

import pytest

from integration.rank_truth.truth import TORCH_WORKLOAD, WORKLOAD, Case
from muster.backends.local.folders import Folders
from muster.backends.local.layout import RunLayout
from muster.backends.local.log_tail import LineReader
from muster.backends.local.scratch import Scratch
from muster.backends.local.session import Machine, open_session
from muster.core.facts import JobFacts
from muster.engine.local_run import LocalRun
from muster.engine.reconcile import ReconcileResult
from support.marked_processes import wait_for_exit
from support.valid_jobs import make_job

WORLD = 6
GOES_ON = re.compile(r"rank (?P<rank>\d+) goes on as process (?P<pid>\d+)")
NAMED_WITHIN_SECONDS = 1.0


@dataclass
class Witness:
    """Kills `victim` once every rank takes part in the collective, and records when the status names it."""

    victim: int
    killed_at: float | None = None
    named_after: float | None = None
    messages: list[str] = field(default_factory=list)
    pids: dict[int, int] = field(default_factory=dict)
    all_there: asyncio.Event = field(default_factory=asyncio.Event)

    def see(self, turn: ReconcileResult[JobFacts]) -> None:
        message = turn.status.message
        if self.killed_at is None or message in self.messages:
            return
        self.messages.append(message)
        if self.named_after is None and message.startswith(f"Rank {self.victim} ") and "SIGKILL" in message:
            self.named_after = time.monotonic() - self.killed_at

    def hear(self, _: int, line: str) -> None:
        """A rank that takes part prints "rank 3 goes on as process 4711"."""
        said = GOES_ON.search(line)
        if said is not None:
            self.pids[int(said["rank"])] = int(said["pid"])
        if len(self.pids) == WORLD:
            self.all_there.set()

    async def kill(self) -> None:
        await self.all_there.wait()
        self.killed_at = time.monotonic()
        os.kill(self.pids[self.victim], signal.SIGKILL)

    @property
    def is_right(self) -> bool:
        """Named in time, and still named at the end."""
        in_time = self.named_after is not None and self.named_after <= NAMED_WITHIN_SECONDS
        return in_time and self.messages[-1].startswith(f"Rank {self.victim} ")


async def witness_a_kill(case: Case, folder: pathlib.Path, victim: int) -> Witness:
    """Run the job, kill the rank, and wait for the job's end."""
    mark = f"truth-kill-{folder}"
    document = case.document(folder, mark)

    job = make_job(document["metadata"]["name"], document["spec"])
    witness = Witness(victim)
    machine = Machine(dict(os.environ), (), 2, "127.0.0.1 localhost\n")
    with Scratch(pathlib.Path(tempfile.gettempdir())) as scratch:
        layout = RunLayout(folder / "out", scratch.folder, job.metadata.name)
        async with open_session(
            job, layout, machine=machine, folders=Folders({}, None), reader=LineReader(witness.hear), clock=time.time
        ) as session:
            run = asyncio.create_task(
                LocalRun(job, session.backend, session.change_event, time.time, witness.see).run(),
            )
            await witness.kill()
            await run
    assert wait_for_exit(mark) == []
    return witness


def verdict(witnesses: list[Witness]) -> str:
    """Return the wrong ones, for people."""
    wrong = [witness for witness in witnesses if not witness.is_right]
    return "\n".join(f"rank {one.victim}: named after {one.named_after} s; said {one.messages}" for one in wrong)


pytestmark = pytest.mark.usefixtures("may_leave_temporary_files")

MANY_AND_FEW = [
    # launcher, kills, and how many of them have to be named in time
    ("direct", 2, 1),
    pytest.param("direct", 44, 43, marks=(pytest.mark.long, pytest.mark.alone)),
    pytest.param("torchrun", 6, 6, marks=(pytest.mark.long, pytest.mark.alone)),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("launcher", "kills", "right"), MANY_AND_FEW)
async def test_a_killed_rank_is_named_within_a_second(
    launcher: str, kills: int, right: int, tmp_path: pathlib.Path
) -> None:
    chance = random.Random(20261121)  # noqa: S311 - the choice is no secret, and the same in every run
    case = Case(launcher, (sys.executable, WORKLOAD, "wait", "--root-cause", "-1"), nodes=3)

    folders = [tmp_path / f"kill-{number}" for number in range(kills)]
    for folder in folders:
        folder.mkdir()

    witnesses = [await witness_a_kill(case, folder, chance.randrange(WORLD)) for folder in folders]

    assert sum(witness.is_right for witness in witnesses) >= right, verdict(witnesses)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(300)
async def test_a_rank_killed_in_torch_all_reduce_is_named_within_a_second(tmp_path: pathlib.Path) -> None:
    case = Case("torchrun", (sys.executable, TORCH_WORKLOAD, "wait"), nodes=3)

    witness = await witness_a_kill(case, tmp_path, victim=3)

    assert witness.is_right, verdict([witness])
    assert "all_reduce" in witness.messages[-1]
