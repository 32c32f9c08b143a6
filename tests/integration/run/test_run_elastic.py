"""`muster run` of elastic jobs: they run with `spec.nodes`, and a restart waits for a node whose agent was killed."""

import json
from pathlib import Path
from typing import Any

from integration.run.muster_run import MARK, OUT, Started, sh, start, write_job
from support.marked_processes import find_marked_processes
from support.sudden_kill import kill_at_once

REPORT = f'echo "$WORLD_SIZE" >{OUT}/.$RANK && mv {OUT}/.$RANK {OUT}/world-$RANK-$MUSTER_ATTEMPT'
TRAIN = f"{REPORT}; while [ ! -e {OUT}/fails ] && [ $MUSTER_ATTEMPT = 1 ]; do sleep 0.05; done"


def start_job(folder: Path, line: str) -> Started:
    elastic = {"minNodes": 1, "maxNodes": 4}
    started = start(
        folder, write_job(folder, sh(line), elastic=elastic, failurePolicy={"maxRestarts": 3}), "-o", "json"
    )
    started.await_files("world-*-1", 4)
    return started


def check_second_attempt(started: Started) -> None:
    """Both attempts have run on both nodes."""
    assert started.wait() == 0
    status: dict[str, Any] = json.loads(started.stdout)["status"]
    (record,) = status["restarts"]["history"]
    assert (status["phase"], status["attempt"], record["members"], status["members"]) == ("Succeeded", 2, "0-1", "0-1")
    worlds = {path.name: path.read_text() for path in (started.folder / "output").glob("world-*")}
    assert worlds == {f"world-{rank}-{attempt}": "4\n" for rank in range(4) for attempt in (1, 2)}
    assert started.left() == []


def test_a_failed_rank_restarts_the_nodes_of_the_spec_and_not_those_that_could_be_added(tmp_path: Path) -> None:
    started = start_job(
        tmp_path, f"{TRAIN}; [ $MUSTER_ATTEMPT-$RANK != 1-3 ] || kill -9 $$; [ $MUSTER_ATTEMPT = 2 ] || sleep 600"
    )
    agents = [line for line in find_marked_processes(f"{MARK}={started.mark}").values() if "--plan " in line]
    assert {line.partition("--node ")[2].partition(" ")[0] for line in agents} == {"0", "1"}
    (started.folder / "output" / "fails").touch()
    check_second_attempt(started)


def test_a_restart_waits_for_the_node_whose_agent_was_killed(tmp_path: Path) -> None:
    started = start_job(tmp_path, f"{REPORT}; [ $MUSTER_ATTEMPT = 2 ] || sleep 600")
    agents = [
        pid
        for pid, line in find_marked_processes(f"{MARK}={started.mark}").items()
        if "--plan " in line and "--node 1 " in line
    ]
    # Stopped first, the agent can't report the SIGTERM that it gets when its guardian ends.
    kill_at_once(agents)
    check_second_attempt(started)
