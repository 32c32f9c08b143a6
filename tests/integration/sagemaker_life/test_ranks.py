"""The ranks' log lines of a training job become the resource's status, as on a cluster."""

from __future__ import annotations

import pytest

from fakes.sagemaker_service.script import make_failing_script
from fakes.sagemaker_site.life import run_scenario
from fakes.sagemaker_site.site import Site, Wire, make_spec
from muster_worker.contract import log_line
from muster_worker.contract.log_line import Event, RankLine

NAME = "vit-4a49acf8a6-1"
TABLE = (
    "Root Cause (first observed failure):",
    "  rank      : 1 (local_rank: 1)",
    "  exitcode  : 7 (pid: 40)",
)
GROUPS = [
    {"name": "data", "instanceType": "ml.c5.xlarge", "instanceCount": 1},
    {"name": "train", "instanceType": "ml.p3.8xlarge", "instanceCount": 1},
]
ONE_GROUP = {
    "instanceType": None,
    "instanceGroups": GROUPS,
    "distribution": {"torchDistributed": {}, "instanceGroup": "train"},
}


def _torchrun(**changes: object) -> dict[str, object]:
    block = {
        **make_spec()["sagemaker"],
        "framework": {"name": "PyTorch", "version": "2.0.0", "pythonVersion": "py310"},
        "instanceType": "ml.p3.8xlarge",
        **changes,
    }
    block = {name: value for name, value in block.items() if value is not None}
    # a user's archive: there is no S3 here to which muster could upload one
    source = {"s3": {"uri": "s3://team/code.tar.gz"}}
    return {"launcher": {"torchrun": {}}, "image": None, "procsPerNode": 2, "sagemaker": block, "source": source}


def _write(site: Site, rank: int, after: float, event: str = Event.PROGRESS, **more: object) -> None:
    at = site.get_now() + after
    fields: dict[str, object] = {"started_at": site.get_now(), **more}
    value = RankLine(event, f"algo-{rank // 2 + 1}", rank, rank % 2, 4, at=at, **fields)  # type: ignore[arg-type]
    site.logs.write(NAME, rank // 2 + 1, log_line.format_line(value), after)


def _states(site: Site) -> dict[str, str]:
    ranks = site.get_status().ranks
    return {} if ranks is None else {one.state: one.ranks for one in ranks.by_state}


def _step(site: Site) -> int | None:
    progress = site.get_status().progress
    return None if progress is None else progress.step


def test_ranks_run_move_fail_and_are_named(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_failing_script(
            "AlgorithmError: ExecuteUserScriptError: ExitCode 1", 120.0
        )
        site.stored.create("vit", make_spec(**_torchrun()))
        await site.wait_until(lambda: site.get_phase() == "Running")
        began = site.get_now()
        for rank in range(4):
            step, at = 10 + rank, began + 4
            _write(site, rank, 1.0, Event.STARTED)
            _write(site, rank, 5.0, step=step, stepped_at=at, metrics={"loss": 0.5})
        await site.wait_until(lambda: _states(site) == {"Running": "0-3"})
        await site.wait_until(lambda: _step(site) == 10)
        assert site.get_status().message.startswith("4 of 4 ranks run; step 10")
        lines = ("Traceback (most recent call last):", "ValueError: no such image")
        _write(
            site, 2, 30.0, Event.ENDED, started_at=began, ended_at=began + 30, exit_code=1, last_lines=lines, step=12
        )
        for rank in (0, 1, 3):
            _write(site, rank, 31.0, Event.ENDED, started_at=began, ended_at=began + 31, signal=15, step=12)
        await site.wait_until(lambda: site.get_phase() == "Failed")
        assert site.get_status().message.startswith(
            "Rank 2 on algo-2 failed with exit code 1 at step 12: ValueError: no such image"
        )
        assert _states(site) == {"Failed": "2", "Stopped": "0-1,3"}
        assert site.find_condition("Failed")[:2] == ("True", "RankFailed")

    run_scenario(wire, life)


@pytest.mark.parametrize(
    ("block", "world", "said"),
    [
        ({"rankReports": "Off"}, 4, "Rank 1 on algo-1 failed with exit code 7"),
        (ONE_GROUP, 2, f"Training job {NAME} failed: AlgorithmError: "),
    ],
)
def test_what_torchrun_says_is_of_the_job_s_ranks_where_no_other_group_has_one(
    wire: Wire, block: dict[str, object], world: int, said: str
) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_failing_script(
            "AlgorithmError: ExecuteUserScriptError: ExitCode 1", 60.0
        )
        site.stored.create("vit", make_spec(**_torchrun(**block)))
        await site.wait_until(lambda: site.get_phase() == "Running")
        for line in TABLE:
            site.logs.write(NAME, 1, line, 5.0)
        await site.wait_until(lambda: site.get_phase() == "Failed")
        status = site.get_status()
        assert status.ranks is not None
        assert (status.ranks.world, status.message[: len(said)]) == (world, said)

    run_scenario(wire, life)
