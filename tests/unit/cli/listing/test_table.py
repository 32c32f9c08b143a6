"""The table of `muster list` and `muster top`."""

from dataclasses import replace
from typing import cast

import pytest
from rich.console import Console

from muster.api.status.progress import Progress
from muster.api.status.restarts import Restarts
from muster.api.status.status import RankStatus, Status
from muster.cli.listing.rows import JobRow
from muster.cli.listing.table import TableOptions, format_age, format_counts, format_table, shorten
from muster.cli.listing.top import draw_jobs
from muster.cli.listing.watched_jobs import WatchedJobs
from muster.clients.kubernetes.client import Client

ROW = JobRow(
    namespace="team-a",
    name="vit",
    backend="Kubernetes",
    nodes=2,
    created_at=1000.0,
    ended_at=None,
    status=Status(
        phase="Running",
        message="4 of 4 ranks run; step 311, 4.4 steps/s",
        attempt=2,
        ranks=RankStatus(world=4, running=4, ready="4/4"),
        restarts=Restarts(total=1, failures=1, disruptions=0, replacement=0),
        progress=Progress(step=311, steps_per_second=4.4, percent=52, estimated_remaining_seconds=3725),
    ),
)
NEW = JobRow("team-b", "new", "SageMaker", None, None, None, Status())


def test_columns_of_a_namespace() -> None:
    row = replace(ROW, status=ROW.status.model_copy(update={"message": "4 of 4 ranks run"}))
    assert format_table([row, NEW], TableOptions(), 1312.0) == [
        "NAME  BACKEND     PHASE    RANKS  ATTEMPT  RESTARTS  PERCENT  REMAINING  AGE    MESSAGE",
        "vit   Kubernetes  Running  4/4          2         1     52 %    1:02:05  5m12s  4 of 4 ranks run",
        "new   SageMaker   Pending  -            0         0        -          -  -",
    ]


def test_wide_columns_of_all_namespaces() -> None:
    lines = format_table([ROW], TableOptions(has_namespaces=True, is_wide=True, width=40), 1312.0)
    assert lines[0].split() == [
        *("NAMESPACE", "NAME", "BACKEND", "PHASE", "NODES", "RANKS", "ATTEMPT", "RESTARTS", "STEP", "STEPS/S"),
        *("PERCENT", "REMAINING", "AGE", "MESSAGE"),
    ]
    assert lines[1].endswith("4.4     52 %    1:02:05  5m12s  4 of 4 ranks run; step 311, 4.4 steps/s")


@pytest.mark.parametrize("width", [100, 110])
def test_messages_are_shortened_to_the_terminals_width(width: int) -> None:
    line = format_table([ROW], TableOptions(width=width), 1312.0)[1]
    assert len(line) <= width
    assert line.endswith("…")
    assert "4 of 4 ranks" in line


def test_the_numbers_are_never_cut() -> None:
    assert "5m12s  4 of 4 ranks run; s…" in format_table([ROW], TableOptions(width=10), 1312.0)[1]


def test_wide_characters_take_two_cells() -> None:
    assert shorten("日本語の文", 6) == "日本…"
    assert shorten("日本語", 6) == "日本語"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (312, "5m12s"),
        (7000, "116m"),
        (3 * 3600 + 120, "3h2m"),
        (9 * 3600 + 120, "9h"),
        (50 * 3600, "2d2h"),
        (20 * 86400 + 3600, "20d"),
    ],
)
def test_ages_are_those_of_kubectl(seconds: float, text: str) -> None:
    assert format_age(seconds) == text


def test_counts() -> None:
    assert format_counts([]) == "0 jobs"
    assert format_counts([ROW, NEW, NEW]) == "3 jobs: 1 running, 2 waiting"


def draw(rows: list[JobRow], size: tuple[int, int], problem: str = "") -> list[str]:
    # nothing is asked
    jobs = WatchedJobs(cast(Client, None), "team-a", problem=problem)
    console = Console(width=size[0], height=size[1], color_system=None)
    with console.capture() as capture:
        console.print(draw_jobs(rows, jobs, size, 1312.0))
    return capture.get().splitlines()


def test_a_terminal_shows_what_fits() -> None:
    lines = draw([ROW] * 9, (90, 6))
    assert len(lines) == 6
    assert lines[0] == "team-a  ·  9 jobs: 9 running"
    assert lines[-1] == "and 6 more jobs"
    assert all(len(line) <= 90 for line in lines)


def test_a_terminal_that_is_too_small() -> None:
    assert len(draw([ROW] * 9, (20, 3))) == 3


def test_a_problem_is_shown_above_the_jobs() -> None:
    assert draw([ROW], (90, 20), "the cluster doesn't answer")[1] == "the cluster doesn't answer"
