import io

from rich.console import Console

from muster.api.status.goodput import Goodput, LostTime
from muster.api.status.progress import Progress
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.source import SourceStatus
from muster.api.status.status import RankDetail, RankStatus, StateRange, Status, StepRange
from muster.cli.board.board import draw_board
from muster.cli.board.goodput_lines import format_goodput
from muster.cli.board.view import View, format_elapsed, make_node_rows, make_rank_rows, read_rank_states
from muster.cli.display import format_summary
from muster.core.facts import AgentFacts, JobFacts, MetricFacts, NodeFacts, ProcessFacts, ProcessState, RankFacts
from muster_worker.contract.schema import MetricValue, RankReport, Report


def status(*states: tuple[str, str, int], details: tuple[RankDetail, ...] = ()) -> Status:
    world = sum(count for _, _, count in states)
    running = sum(count for state, _, count in states if state == "Running")
    return Status(
        phase="Failed" if details else "Running",
        message="What is going on.",
        ranks=RankStatus(
            world=world,
            running=running,
            ready=f"{running}/{world}",
            by_state=tuple(StateRange(state=state, ranks=ranks, count=count) for state, ranks, count in states),
            details=details,
        ),
        progress=Progress(step=120, steps_per_second=3.4, metrics={"loss": 0.31234}),
    )


def facts(steps: tuple[int | None, ...], procs: int = 2, memory: int | None = None) -> JobFacts:
    nodes = []
    for node in range(len(steps) // procs):
        ranks = range(node * procs, (node + 1) * procs)
        reports = tuple(
            RankReport(rank, rank % procs, "Running", pid=4000 + rank, step=steps[rank], rss_bytes=memory)
            for rank in ranks
        )
        metrics = (MetricFacts(MetricValue("loss", 0.31234, node * procs, 0.0), 0.0),) if node == 0 else ()
        report = Report("uid", node, 0, 1, 1, "Running", ranks=reports)
        agent = AgentFacts(report, 0.0, tuple(RankFacts(entry) for entry in reports), metrics)
        nodes.append(NodeFacts(node, f"digits-{node}", ProcessFacts(ProcessState.RUNNING), agent))
    return JobFacts(0.0, tuple(nodes), heartbeat_seconds=5.0)


def drawn(view: View, width: int = 80, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    with console.capture() as capture:
        console.print(draw_board(view, width, height))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_the_board_says_that_the_ranks_run_edited_code() -> None:
    source = SourceStatus(config_map="digits-source-0123456789abcdef", sha256="a" * 64)
    edited = status(("Running", "0-1", 2)).model_copy(update={"source": source})
    line = "the ranks run the edited code of ConfigMap digits-source-0123456789abcdef"
    assert line in drawn(View("digits", 2, edited, 72))
    assert not any("edited" in each for each in drawn(View("digits", 2, status(("Running", "0-1", 2)), 72)))


def test_a_rank_s_node_is_the_member_that_runs_it() -> None:
    current = status(("Running", "0-3", 4)).model_copy(update={"members": "0,2"})
    nodes = [row.node for row in make_rank_rows(View("digits", 2, current, 72))]
    assert nodes == ["digits-0", "digits-0", "digits-2", "digits-2"]


def test_a_running_job_has_a_line_for_each_rank() -> None:
    view = View("digits", 2, status(("Running", "0-3", 4)), 72, facts((120, 132, None, 131)), {2: "loading data"})
    assert drawn(view) == [
        "digits  Running  1:12  ·  ranks 4/4  ·  step 120  ·  3.4 steps/s  ·  loss 0.3123",
        "What is going on.",
        "",
        "RANK  NODE      STATE       PID  STEP  BEHIND",
        "   0  digits-0  ● Running  4000   120      12  loss 0.3123",
        "   1  digits-0  ● Running  4001   132       -",
        "   2  digits-1  ● Running  4002     -       -  loading data",
        "   3  digits-1  ● Running  4003   131       -",
    ]


def restarted(*seconds_lost: float | None, total: int) -> Status:
    history = tuple(
        RestartRecord(
            attempt=number,
            reason="RankKilled",
            message="Rank 2 on digits-1 was killed by SIGKILL",
            counts_as="Failure",
            at="2026-11-23T13:28:57Z",
            seconds_lost=seconds,
        )
        for number, seconds in enumerate(seconds_lost, total - len(seconds_lost) + 1)
    )
    restarts = Restarts(total=total, failures=total, disruptions=0, replacement=0, history=history)
    return status(("Running", "0-3", 4)).model_copy(update={"restarts": restarts})


def test_the_last_restarts_are_below_the_message() -> None:
    one = drawn(View("digits", 2, restarted(1.23, total=1), 72, facts((5, 5, 5, 5))))
    expected = "attempt 1: Rank 2 on digits-1 was killed by SIGKILL · 1.2 s until all ranks ran"
    assert one[2].startswith(expected[:70])
    assert one[3:5] == ["", "RANK  NODE      STATE       PID  STEP  BEHIND"]

    many = drawn(View("digits", 2, restarted(1, 1, 1, None, total=7), 72, facts((5, 5, 5, 5))), width=120)
    assert many[2:7] == [
        "4 earlier restarts",
        "attempt 5: Rank 2 on digits-1 was killed by SIGKILL · 1.0 s until all ranks ran again",
        "attempt 6: Rank 2 on digits-1 was killed by SIGKILL · 1.0 s until all ranks ran again",
        "attempt 7: Rank 2 on digits-1 was killed by SIGKILL",
        "",
    ]


def test_goodput_is_below_the_restarts() -> None:
    lost = (
        LostTime(cause="Start", seconds=4, device_seconds=32),
        LostTime(cause="Recomputation", seconds=9, device_seconds=72),
        LostTime(cause="WaitingForNode", seconds=2.5, device_seconds=2.5),
    )
    goodput = Goodput(ratio=0.9984, productive_seconds=9998, total_seconds=10013.5, lost=lost, device="nvidia.com/gpu")
    shown = restarted(1, total=1).model_copy(update={"goodput": goodput})
    lines = drawn(View("digits", 2, shown, 72, facts((5, 5, 5, 5))), width=120)
    assert lines[3:5] == [
        "goodput 99.8 % of 10,014 s; lost GPU-seconds: repeated steps 72, start 32, waiting for a node 2.5",
        "",
    ]


def test_goodput_without_losses_is_the_ratio_alone() -> None:
    alone = Goodput(ratio=1, productive_seconds=5, total_seconds=5, device="rank")
    assert format_goodput(Status(goodput=alone)) == ("goodput 100.0 % of 5.0 s",)
    assert format_goodput(Status(goodput=Goodput())) == ()
    assert format_goodput(Status()) == ()


def test_restarts_leave_the_rows_their_place_on_a_small_terminal() -> None:
    view = View("digits", 2, restarted(1, 1, 1, 1, total=7), 72, facts((5, 5, 5, 5)))
    for height in range(8, 20):
        assert len(drawn(view, height=height)) <= max(height, 9), height


def test_where_no_step_was_taken_no_step_is_shown() -> None:
    view = View("digits", 2, status(("Running", "0-3", 4)), 72, facts((0, 0, 0, 0)))
    assert [row.step for row in make_rank_rows(view)] == [None] * 4
    late = View("digits", 2, status(("Running", "0-3", 4)), 72, facts((0, 1, 1, 1)))
    assert [row.step for row in make_rank_rows(late)] == [0, 1, 1, 1]


def test_a_failed_rank_says_how_it_ended() -> None:
    root_cause = RankDetail(rank=1, node=0, state="Failed", exit_code=7, reason="RankFailed", message="ValueError: 13")
    view = View(
        "digits", 2, status(("Failed", "1", 1), ("Stopped", "0,2-3", 3), details=(root_cause,)), 9, facts((1, 1, 1, 1))
    )
    assert "   1  digits-0  ✘ Failed   4001     1       -  exit 7 · ValueError: 13" in drawn(view)


def test_before_anything_is_known_there_is_a_header() -> None:
    assert drawn(View("digits", 2, Status(), 0))[0] == "digits  Pending  0:00"


def test_a_long_note_gives_way_to_the_numbers() -> None:
    view = View("digits", 2, status(("Running", "0-3", 4)), 1, facts((1, 1, 1, 1)), {3: "x" * 200})
    line = drawn(view, width=60)[-1]
    assert line.startswith("   3  digits-1  ● Running  4003     1       -  xxx")
    assert line.endswith("…")
    assert len(line) == 60


def test_what_living_ranks_hold_of_memory() -> None:
    view = View("digits", 2, status(("Running", "0-3", 4)), 1, facts((1, 1, 1, 1), memory=3 * 2**29))
    assert drawn(view)[3:5] == [
        "RANK  NODE      STATE       PID        MEM  STEP  BEHIND",
        "   0  digits-0  ● Running  4000  1,536 MiB     1       -  loss 0.3123",
    ]


def test_memory_is_the_first_to_give_way() -> None:
    view = View("digits", 2, status(("Running", "0-3", 4)), 1, facts((1, 1, 1, 1), memory=412 * 2**20))
    assert "412 MiB" in drawn(view, width=54)[-1]
    assert drawn(view, width=53)[-1] == "   3  digits-1  ● Running  4003     1       -"


def test_a_narrow_terminal_does_without_some_columns() -> None:
    view = View("digits", 2, status(("Running", "0-3", 4)), 1, facts((1, 1, 1, 13)), {3: "loading data"})
    assert drawn(view, width=40)[-2:] == [
        "   2  digits-1  ● Running     1      12",
        "   3  digits-1  ● Running    13       -",
    ]
    assert drawn(view, width=22)[-1] == "   3  ● Running    13"


def test_how_many_ranks_run_is_no_news_of_a_job_that_is_over() -> None:
    over = status(("Succeeded", "0-3", 4)).model_copy(
        update={"phase": "Succeeded", "completion_time": "2026-01-01T00:00:00Z"}
    )
    assert drawn(View("digits", 2, over, 72))[0].startswith("digits  Succeeded  1:12  ·  step 120  ·")


def test_what_a_rank_prints_cannot_move_the_cursor() -> None:
    view = View(
        "digits", 2, status(("Running", "0-3", 4)), 1, facts((1, 1, 1, 1)), {3: "\x1b[2J\x1b[31mhello\x07\r\nworld"}
    )
    assert drawn(view)[-1].endswith("hello world")


def test_many_ranks_are_shown_by_node_and_problem_first() -> None:
    world, procs = 160, 4
    states = (("Running", "0-101,103-159", 159), ("Failed", "102", 1))
    view = View("digits", procs, status(*states), 1, facts((5,) * world, procs))
    lines = drawn(view, height=20)
    assert len(lines) <= 20
    assert lines[4].split() == ["digits-25", "✘", "1", "Failed", "●", "3", "Running", "5", "-"]
    assert lines[-1] == "and 27 more nodes"


def test_a_small_terminal_gets_nodes_instead_of_ranks() -> None:
    view = View("digits", 4, status(("Running", "0-7", 8)), 1, facts((5,) * 8, 4))
    assert any("8 Running" in line or "4 Running" in line for line in drawn(view, height=10))


def test_the_notice_stands_below() -> None:
    view = View(
        "digits",
        2,
        status(("Running", "0-3", 4)),
        1,
        facts((1, 1, 1, 1)),
        notice="stopping (Ctrl-C again to kill at once)",
    )
    assert drawn(view)[-1] == "stopping (Ctrl-C again to kill at once)"


def test_ranges_that_were_cut_short_leave_ranks_unknown() -> None:
    cut = status(("Running", "0,2-…", 4))
    assert read_rank_states(cut) == {0: "Running"}
    assert [row.state for row in make_rank_rows(View("digits", 2, cut, 0))] == [
        "Running",
        "Unknown",
        "Unknown",
        "Unknown",
    ]


def test_edited_ranges_take_bounded_time() -> None:
    edited = status(("Running", "0-999999999999999999", 1), ("Failed", "\u00b2,1", 1))
    assert read_rank_states(edited) == {1: "Failed"}


def test_a_node_is_as_far_as_its_slowest_rank() -> None:
    rows = make_node_rows(make_rank_rows(View("digits", 2, status(("Running", "0-3", 4)), 0, facts((7, 19, 9, 19)))))
    assert [(row.node, row.states, row.step, row.behind) for row in rows] == [
        ("digits-0", {"Running": 2}, 7, 12),
        ("digits-1", {"Running": 2}, 9, 10),
    ]


def test_a_plain_line_says_it_all() -> None:
    view = View("digits", 2, status(("Running", "0-3", 4)), 3725)
    assert format_summary(view) == "1:02:05 Running: What is going on. (loss 0.3123)"


def test_clock() -> None:
    assert [format_elapsed(0.9), format_elapsed(61), format_elapsed(3600)] == ["0:00", "1:01", "1:00:00"]


def test_without_facts_the_steps_are_those_of_the_status() -> None:
    current = status(("Running", "0-3", 4))
    assert current.ranks is not None
    by_step = (StepRange(step=120, ranks="1"), StepRange(step=135, ranks="0,2"))
    seen = current.model_copy(
        update={
            "ranks": current.ranks.model_copy(update={"by_step": by_step}),
            "progress": Progress(step=120, slowest_rank=1),
        }
    )

    rows = make_rank_rows(View("digits", 2, seen, 72))

    assert [(row.step, row.behind) for row in rows] == [(135, None), (120, 15), (135, None), (None, None)]
