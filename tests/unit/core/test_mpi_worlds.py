"""With any failure in an MPI world, and any kills of the operator, the job ends and its status names the root cause."""

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.status.status import Condition
from muster.core.actions import CreateNode
from muster.core.facts import StopRequest
from support.searches import choose_example_count
from unit.core.builders import T0, mpi_job, with_spec
from unit.core.mpi_world import HYDRA, OPEN_MPI, MpiWorld, new_mpi_world

FAMILIES = st.sampled_from((OPEN_MPI, HYDRA))
OPERATOR_KILLS = st.sets(st.integers(0, 25), max_size=4)
"""Rounds in which the operator is killed before it applies its decision."""

RANKS = st.integers(0, 5)
NODES = st.integers(0, 2)


def run_rounds(world: MpiWorld, rounds: int, operator_kills: set[int], rounds_before: int = 0) -> None:
    for round_number in range(rounds_before, rounds_before + rounds):
        actions = world.run_round(
            newest_first=round_number % 3 == 0, applied=0 if round_number in operator_kills else None
        )
        assert round_number < 3 or not any(isinstance(action, CreateNode) for action in actions), (
            "a pod was created twice"
        )


def start_world(family: str, operator_kills: set[int], rank_counts: tuple[int, int, int] = (2, 2, 2)) -> MpiWorld:
    """Return a world with running ranks, on 3 nodes."""
    world = new_mpi_world(mpi_job(3, 2), family, rank_counts)
    run_rounds(world, 3, set())
    run_rounds(world, 7, operator_kills, 3)
    assert all(node.started_attempts == [1] for node in world.mpi)
    return world


def run_to_the_end(world: MpiWorld, operator_kills: set[int]) -> Condition:
    """Run rounds until the job has ended, and return its final condition."""
    run_rounds(world, 25, operator_kills, 10)
    condition = world.status.final_condition
    assert condition is not None, world.status.message
    assert not any(node.has_running_ranks for node in world.mpi)
    return condition


@settings(max_examples=choose_example_count(60, share=8), deadline=None)
@given(FAMILIES, OPERATOR_KILLS)
def test_a_job_without_failures_completes(family: str, operator_kills: set[int]) -> None:
    world = start_world(family, operator_kills)
    for rank in world.ranks:
        rank.end(world.now, 0, None)

    assert run_to_the_end(world, operator_kills).reason == "AllRanksSucceeded"


@settings(max_examples=choose_example_count(120, share=12), deadline=None)
@given(FAMILIES, OPERATOR_KILLS, RANKS, st.sampled_from(((3, None), (1, None), (None, 9), (None, 11))))
def test_the_message_names_the_rank_that_failed_first(
    family: str, operator_kills: set[int], number: int, exit_code_and_signal: tuple[int | None, int | None]
) -> None:
    world = start_world(family, operator_kills)
    world.ranks[number].end(world.now, *exit_code_and_signal)

    reason = run_to_the_end(world, operator_kills).reason

    assert reason == ("RankKilled" if exit_code_and_signal[1] is not None else "RankFailed")
    assert world.status.message.startswith(f"Rank {number} on digits-{number // 2} "), world.status.message
    assert world.status.ranks is not None
    assert [(entry.state, entry.ranks) for entry in world.status.ranks.by_state if entry.state == "Failed"] == [
        ("Failed", str(number))
    ]


@settings(max_examples=choose_example_count(60, share=8), deadline=None)
@given(FAMILIES, OPERATOR_KILLS, NODES)
def test_the_message_names_the_lost_node(family: str, operator_kills: set[int], number: int) -> None:
    world = start_world(family, operator_kills)
    world.kill_container(number)

    assert run_to_the_end(world, operator_kills).reason == "OOMKilled"
    assert world.status.message.startswith(f"digits-{number}: container trainer ran out of memory")


@settings(max_examples=choose_example_count(60, share=8), deadline=None)
@given(FAMILIES, OPERATOR_KILLS, st.sampled_from(((255, None), (None, 9))))
def test_the_message_names_mpirun_if_it_fails_first(
    family: str, operator_kills: set[int], exit_code_and_signal: tuple[int | None, int | None]
) -> None:
    world = start_world(family, operator_kills)
    world.mpi[0].end_mpirun(world.now, *exit_code_and_signal, line="Launch proxy failed.")
    for rank in world.ranks:
        rank.end(world.now, None, 9)

    assert run_to_the_end(world, operator_kills).reason == "LauncherFailed"
    assert world.status.message.startswith("mpirun on digits-0 ")


@settings(max_examples=choose_example_count(60, share=8), deadline=None)
@given(FAMILIES, OPERATOR_KILLS, st.sampled_from(((2, 2, 0), (2, 0, 0), (2, 1, 2))))
def test_a_world_with_fewer_ranks_never_succeeds(
    family: str, operator_kills: set[int], rank_counts: tuple[int, int, int]
) -> None:
    world = start_world(family, operator_kills, rank_counts)
    for rank in world.ranks:
        rank.end(world.now, 0, None)
    world.mpi[0].end_mpirun(world.now, 0)

    assert run_to_the_end(world, operator_kills).reason == "WorldSizeMismatch"
    assert "The job asked for 6 ranks (3 nodes x 2)" in world.status.message


@settings(max_examples=choose_example_count(40, share=8), deadline=None)
@given(FAMILIES, OPERATOR_KILLS)
def test_a_requested_stop_is_no_failure_of_mpirun(family: str, operator_kills: set[int]) -> None:
    world = start_world(family, operator_kills)
    world.stop = StopRequest(world.now, "Ctrl-C", 10.0)

    assert run_to_the_end(world, operator_kills).reason == "StopRequested"
    assert world.status.message.startswith("Stopped by Ctrl-C")


@settings(max_examples=choose_example_count(40, share=8), deadline=None)
@given(FAMILIES, OPERATOR_KILLS)
def test_a_deadline_is_no_failure_of_mpirun(family: str, operator_kills: set[int]) -> None:
    world = start_world(family, operator_kills)
    world.job = with_spec(world.job, active_deadline_seconds=int(world.now - T0) + 1)

    assert run_to_the_end(world, operator_kills).reason == "DeadlineExceeded"
