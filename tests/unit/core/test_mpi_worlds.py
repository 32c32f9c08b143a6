"""With any failure in an MPI world, and any number of kills of its operator: the root cause is named, and ends the
job.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.status.status import Condition
from muster.core.actions import CreateNode
from muster.core.facts import StopRequest
from support.searches import examples
from unit.core.builders import T0, mpi_job
from unit.core.mpi_world import HYDRA, OPEN_MPI, MpiWorld, new_mpi_world

FAMILIES = st.sampled_from((OPEN_MPI, HYDRA))
CRASHES = st.sets(st.integers(0, 25), max_size=4)
"""Rounds in which the operator is killed before it has carried out its decision."""

RANKS = st.integers(0, 5)
NODES = st.integers(0, 2)


def live(world: MpiWorld, turns: int, crashes: set[int], done: int = 0) -> None:
    for turn in range(done, done + turns):
        made = world.run_round(newest_first=turn % 3 == 0, applied=0 if turn in crashes else None)
        assert turn < 3 or not any(isinstance(action, CreateNode) for action in made), "a pod is made twice"


def begun(family: str, crashes: set[int], starts: tuple[int, int, int] = (2, 2, 2)) -> MpiWorld:
    """Return a world with running ranks, on 3 nodes."""
    world = new_mpi_world(mpi_job(3, 2), family, starts)
    live(world, 3, set())
    live(world, 7, crashes, 3)
    assert all(node.started_attempts == [1] for node in world.mpi)
    return world


def ended(world: MpiWorld, crashes: set[int]) -> Condition:
    """How the job ended."""
    live(world, 25, crashes, 10)
    condition = world.status.final_condition
    assert condition is not None, world.status.message
    assert not any(node.has_running_ranks for node in world.mpi)
    return condition


@settings(max_examples=examples(60), deadline=None)
@given(FAMILIES, CRASHES)
def test_an_undisturbed_job_completes(family: str, crashes: set[int]) -> None:
    world = begun(family, crashes)
    for rank in world.ranks:
        rank.end(world.now, 0, None)

    assert ended(world, crashes).reason == "AllRanksSucceeded"


@settings(max_examples=examples(120), deadline=None)
@given(FAMILIES, CRASHES, RANKS, st.sampled_from(((3, None), (1, None), (None, 9), (None, 11))))
def test_the_rank_that_failed_first_is_named(
    family: str, crashes: set[int], number: int, how: tuple[int | None, int | None]
) -> None:
    world = begun(family, crashes)
    world.ranks[number].end(world.now, *how)

    reason = ended(world, crashes).reason

    assert reason == ("RankKilled" if how[1] is not None else "RankFailed")
    assert world.status.message.startswith(f"Rank {number} on digits-{number // 2} "), world.status.message
    assert world.status.ranks is not None
    assert [(entry.state, entry.ranks) for entry in world.status.ranks.by_state if entry.state == "Failed"] == [
        ("Failed", str(number))
    ]


@settings(max_examples=examples(60), deadline=None)
@given(FAMILIES, CRASHES, NODES)
def test_the_node_that_was_lost_is_named(family: str, crashes: set[int], number: int) -> None:
    world = begun(family, crashes)
    world.kill_container(number)

    assert ended(world, crashes).reason == "OOMKilled"
    assert world.status.message.startswith(f"digits-{number}: container trainer ran out of memory")


@settings(max_examples=examples(60), deadline=None)
@given(FAMILIES, CRASHES, st.sampled_from(((255, None), (None, 9))))
def test_mpiruns_own_failure_is_its_own(family: str, crashes: set[int], how: tuple[int | None, int | None]) -> None:
    world = begun(family, crashes)
    world.mpi[0].end_mpirun(world.now, *how, line="Launch proxy failed.")
    for rank in world.ranks:
        rank.end(world.now, None, 9)

    assert ended(world, crashes).reason == "LauncherFailed"
    assert world.status.message.startswith("mpirun on digits-0 ")


@settings(max_examples=examples(60), deadline=None)
@given(FAMILIES, CRASHES, st.sampled_from(((2, 2, 0), (2, 0, 0), (2, 1, 2))))
def test_a_smaller_world_never_succeeds(family: str, crashes: set[int], starts: tuple[int, int, int]) -> None:
    world = begun(family, crashes, starts)
    for rank in world.ranks:
        rank.end(world.now, 0, None)
    world.mpi[0].end_mpirun(world.now, 0)

    assert ended(world, crashes).reason == "WorldSizeMismatch"
    assert "The job asked for 6 ranks (3 nodes x 2)" in world.status.message


@settings(max_examples=examples(40), deadline=None)
@given(FAMILIES, CRASHES)
def test_a_requested_stop_is_no_failure_of_mpirun(family: str, crashes: set[int]) -> None:
    world = begun(family, crashes)
    world.stop = StopRequest(world.now, "Ctrl-C", 10.0)

    assert ended(world, crashes).reason == "StopRequested"
    assert world.status.message.startswith("Stopped by Ctrl-C")


@settings(max_examples=examples(40), deadline=None)
@given(FAMILIES, CRASHES)
def test_a_deadline_is_no_failure_of_mpiruns(family: str, crashes: set[int]) -> None:
    world = begun(family, crashes)
    world.job = world.job.model_copy(
        update={"spec": world.job.spec.model_copy(update={"active_deadline_seconds": int(world.now - T0) + 1})}
    )

    assert ended(world, crashes).reason == "DeadlineExceeded"
