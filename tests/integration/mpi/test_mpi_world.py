"""MPI worlds of several nodes, started through the agents by each implementation's own mpirun."""

import os
import signal
import sys
import time

import pytest

from muster.api.status.status import Status
from muster.core.facts import JobFacts
from muster.core.failure.mpi_root_cause import MPI_ERR_UNKNOWN
from muster_worker.contract.schema import (
    AgentPhase,
    Command,
    CommandKind,
    EndReason,
    Launcher,
    RankReport,
    RankState,
    Report,
)
from support.agent_world import JOB, AgentWorld
from support.edited_sources import pack_source
from support.mpi_installs import Install, install_or_skip
from unit.core.builders import compute_status, mpi_job

NODES, PROCS = 3, 2

SUM = """
import os, sys
sys.path.append(os.environ["MPI4PY"])
from mpi4py import MPI
world = MPI.COMM_WORLD
node = world.Split_type(MPI.COMM_TYPE_SHARED)
said = [world.rank, world.size, node.size, world.allreduce(world.rank), os.environ["SM_CURRENT_HOST"]]
said.append("KUBEFLOW_TRAINER_SERVER_URL" in os.environ)  # only rank 0 reports its progress to the agent
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NCCL_SOCKET_IFNAME", "MASTER_ADDR")
said += [os.environ.get(name) for name in names]
os.write(1, (" SUM " + " ".join(map(str, said)) + "\\n").encode())  # in one piece: mpirun passes pieces on
"""

FAIL = """
import os, sys, time
sys.path.append(os.environ["MPI4PY"])
from mpi4py import MPI
world = MPI.COMM_WORLD
world.barrier()
if PLACE:
    print("why", file=sys.stderr, flush=True)
    os._exit(3)
time.sleep(60)
"""


def sum_line(rank: int) -> str:
    """Return what a rank of `SUM` prints before its variables."""
    return f"SUM {rank} {NODES * PROCS} {PROCS} 15 algo-{rank // PROCS + 1} {rank == 0}"


def run(world: AgentWorld, mpi: Install, *command: str) -> list[Report]:
    """Return the last reports of all nodes, once node 0's mpirun has ended and the others were stopped."""
    world.make_plan(*command, launcher=Launcher.MPI, nodes=NODES, procs=PROCS)
    world.launch(environment=mpi.add_to(os.environ))
    world.wait_ended(0)
    world.send(CommandKind.STOP, grace=2.0)
    return [world.wait_ended(node) for node in range(NODES)]


def test_sum_over_three_nodes(world: AgentWorld, mpi: Install) -> None:
    reports = run(world, mpi, sys.executable, world.write_script(SUM))
    ranks = [rank for report in reports for rank in report.ranks]
    ends = [(rank.rank, rank.local_rank, rank.state, rank.exit_code, rank.stopped) for rank in ranks]
    assert ends == [(rank, rank % PROCS, RankState.EXITED, 0, False) for rank in range(NODES * PROCS)]
    assert reports[0].launcher is not None
    assert (reports[0].launcher.name, reports[0].launcher.exit_code) == ("mpirun", 0)
    assert world.leave() == 0
    for node in range(NODES):
        for rank in range(node * PROCS, (node + 1) * PROCS):
            variables = f"{rank} {rank % PROCS} {NODES * PROCS} {PROCS} =lo 127.0.0.1"
            assert f"[rank {rank}]  {sum_line(rank)} {variables}\n" in world.log(node)
    assert [report.phase for report in reports] == [AgentPhase.ENDED] * NODES


@pytest.mark.parametrize("name", ["openmpi4", "openmpi5", "mpich", pytest.param("impi", marks=pytest.mark.long)])
def test_a_world_on_one_node(world: AgentWorld, name: str) -> None:
    """Open MPI 4 ends when what starts daemons on other nodes isn't there, though it has none to start."""
    world.make_plan("/bin/true", launcher=Launcher.MPI, nodes=1, procs=PROCS)
    world.launch(environment=install_or_skip(name).add_to(os.environ))
    assert [rank.exit_code for rank in world.wait_ended(0).ranks] == [0] * PROCS, world.log(0)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("openmpi4", "plm_rsh_agent = /bin/false\norte_rsh_agent = /bin/false\n"),
        ("openmpi5", "plm_ssh_agent=/bin/false\n"),
    ],
)
def test_neither_files_of_parameters_nor_an_image_replace_the_transport(
    world: AgentWorld, name: str, parameters: str
) -> None:
    tune = world.write_script(parameters, "tune.conf")
    world.make_plan("/bin/true", launcher=Launcher.MPI, nodes=2, procs=1, launcher_args=("--tune", tune))
    world.launch(environment=install_or_skip(name).add_to({**os.environ, "OMPI_MCA_orte_rsh_agent": "/bin/false"}))
    assert [rank.exit_code for rank in world.wait_ended(0).ranks] == [0], world.log(0)


def test_a_world_starts_after_the_network_check(world: AgentWorld) -> None:
    world.make_plan("/bin/true", launcher=Launcher.MPI, nodes=2, procs=PROCS, network_check=True)
    world.launch(environment=install_or_skip("openmpi5").add_to(os.environ))
    world.wait_ended(0)
    world.send(CommandKind.STOP, grace=2.0)
    for node in range(2):
        report = world.wait_ended(node)
        assert [rank.exit_code for rank in report.ranks] == [0] * PROCS, world.log(node)
        assert report.figures is not None
        assert report.figures.problem is None


def all_ranks(reports: list[Report]) -> list[RankReport]:
    return [rank for report in reports for rank in report.ranks]


def test_the_exit_code_of_a_rank(world: AgentWorld, mpi: Install) -> None:
    """It is reported at once. MPICH's mpirun may continue then: the operator doesn't wait for it.

    mpirun may end with another code: Open MPI's passes on the first failure that reaches it, which may be that of a
    rank on its own node that lost its peer.
    """
    script = FAIL.replace("PLACE", "world.rank == 3")
    world.make_plan(sys.executable, world.write_script(script), launcher=Launcher.MPI, nodes=NODES, procs=PROCS)
    world.launch(environment=mpi.add_to(os.environ))
    world.wait(1, lambda report: any(rank.exit_code == 3 for rank in report.ranks))
    if mpi.name.startswith("openmpi"):
        launcher = world.wait_ended(0).launcher
        assert launcher is not None
        assert launcher.exit_code in (3, MPI_ERR_UNKNOWN)
    world.send(CommandKind.STOP, grace=2.0)
    reports = [world.wait_ended(node) for node in range(NODES)]
    status = compute_status(mpi_job(NODES, PROCS), Status(), JobFacts(time.monotonic(), world.get_facts(), 5.0), 30.0)
    assert status.message.startswith("Rank 3 on digits-1 failed with exit code 3"), status.message
    root_cause = reports[1].ranks[1]
    assert (root_cause.exit_code, root_cause.reason, root_cause.last_lines[0]) == (3, None, "why")
    others = [rank for rank in all_ranks(reports) if rank.rank != 3]
    assert all(rank.state == RankState.EXITED and rank.exit_code != 0 for rank in others)


@pytest.mark.usefixtures("may_leave_temporary_files")
def test_a_killed_rank_is_named(world: AgentWorld, mpi: Install) -> None:
    world.make_plan("sleep", "60", launcher=Launcher.MPI, nodes=NODES, procs=PROCS)
    world.launch(environment=mpi.add_to(os.environ))
    live = world.wait(2, lambda report: all(rank.pid is not None for rank in report.ranks) and bool(report.ranks))
    assert live.ranks[0].pid is not None
    os.kill(live.ranks[0].pid, signal.SIGKILL)
    is_told = world.wait(2, lambda report: report.ranks[0].state == RankState.EXITED)
    assert (is_told.ranks[0].rank, is_told.ranks[0].signal, is_told.ranks[0].reason) == (4, 9, None)
    # Hydra's mpirun waits for the other processes of a program that doesn't use MPI
    world.send(CommandKind.STOP, grace=2.0)
    launcher = world.wait_ended(0).launcher
    assert launcher is not None
    assert launcher.exit_code != 0 or launcher.signal is not None
    assert all(world.wait_ended(node).phase == AgentPhase.ENDED for node in range(NODES))


def test_a_stop_reaches_every_rank(world: AgentWorld, mpi: Install) -> None:
    """Each rank has time to write a checkpoint, although mpirun stops too."""
    script = "trap 'sleep 1.5; echo SAVED $RANK; exit 0' TERM; echo UP; while :; do sleep 0.1; done"
    world.make_plan("/bin/sh", "-c", script, launcher=Launcher.MPI, nodes=2, procs=PROCS)
    world.launch(environment=mpi.add_to(os.environ))
    for node in range(2):
        world.wait_said(node, "UP", PROCS)
    world.send(CommandKind.STOP, grace=10.0)
    ranks = all_ranks([world.wait_ended(node) for node in range(2)])
    assert [(rank.exit_code, rank.stopped) for rank in ranks] == [(0, True)] * 2 * PROCS
    world.leave()
    for rank in range(2 * PROCS):
        assert f"SAVED {rank}\n" in world.log(rank // PROCS)


@pytest.mark.usefixtures("may_leave_temporary_files")
@pytest.mark.parametrize(
    ("name", "kind", "first"),
    [
        ("openmpi5", CommandKind.KILL, 0),
        ("mpich", CommandKind.EXIT, 1),
        pytest.param("openmpi4", CommandKind.EXIT, 1, marks=pytest.mark.long),
        pytest.param("impi", CommandKind.KILL, 0, marks=pytest.mark.long),
    ],
)
def test_a_kill_leaves_nothing(world: AgentWorld, name: str, kind: str, first: int) -> None:
    """Whichever node gets Kill first: the other's rank ends with their connection, before its own Kill or with it."""
    world.make_plan("/bin/sh", "-c", "trap '' TERM; echo UP; sleep 300", launcher=Launcher.MPI, nodes=2, procs=1)
    world.launch(environment=install_or_skip(name).add_to(os.environ))
    for node in range(2):
        world.wait_said(node, "UP", 1)
    word = Command(1, JOB, 1, kind)
    world.collector.set_command(first, word)
    (rank,) = world.wait_ended(first).ranks
    assert (rank.signal, rank.stopped) == (9, True)
    (other,) = world.wait(1 - first, lambda report: report.ranks[0].state == RankState.EXITED).ranks
    assert (other.signal, other.stopped) == (9, False)
    world.collector.set_command(1 - first, word)
    world.wait_ended(1 - first)


def test_all_ranks_on_one_node_are_no_success(world: AgentWorld) -> None:
    """Open MPI 5 does this if it gets only the settings of Open MPI 4."""
    ran = world.folder / "ran"
    mpi = install_or_skip("openmpi5")
    world.make_plan(
        *("mpirun", "--map-by", "slot:oversubscribe", "--prtemca", "prte_default_hostfile", "none", "-np", "4"),
        *(sys.executable, world.write_script(f"open({str(ran)!r}, 'w')")),
        launcher=Launcher.MPI,
        nodes=2,
        procs=2,
    )
    world.launch(environment=mpi.add_to(os.environ))
    report = world.wait_ended(0)
    assert report.problem is not None
    assert report.problem.reason == EndReason.WORLD_SIZE_MISMATCH
    assert report.problem.message == "mpirun gave a world of 4 ranks on one node; the job asks for 2 nodes x 2 ranks"
    assert report.launcher is not None
    assert report.launcher.exit_code == 65
    assert not ran.exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("true",), "Open MPI, MPICH or Intel MPI"),
        (("mpirun", "-np", "2", "true"), "Open MPI, MPICH or Intel MPI"),
        (("/nowhere/mpirun", "-np", "2", "true"), "'/nowhere/mpirun'"),
    ],
)
def test_no_mpirun_in_the_image(world: AgentWorld, command: tuple[str, ...], words: str) -> None:
    world.make_plan(*command, launcher=Launcher.MPI)
    world.launch(environment={"PATH": "/nowhere"})
    launcher = world.wait_ended(0).launcher
    assert launcher is not None
    assert (launcher.name, launcher.exit_code, launcher.reason) == ("mpirun", 127, EndReason.COMMAND_NOT_FOUND)
    assert words in launcher.last_lines[0]


def own_mpirun(mpi: Install, *rank: str) -> tuple[str, ...]:
    """Return the command of a job from elsewhere, which has nothing specific to muster."""
    per_node = ("--map-by", f"ppr:{PROCS}:node") if mpi.name.startswith("openmpi") else ("-ppn", str(PROCS))
    return ("mpirun", "-np", str(NODES * PROCS), *per_node, *rank)


@pytest.mark.parametrize("name", ["openmpi4", "openmpi5"])
def test_an_mpirun_that_asks_for_too_much_is_heard_from_the_beginning(world: AgentWorld, name: str) -> None:
    world.make_plan("mpirun", "-np", "99", "true", launcher=Launcher.MPI)
    world.launch(environment=install_or_skip(name).add_to(os.environ))
    launcher = world.wait_ended(0).launcher
    assert launcher is not None
    assert launcher.last_lines[0].startswith("There are not enough slots available in the system to satisfy the 99")


@pytest.mark.parametrize("name", ["openmpi4", pytest.param("impi", marks=pytest.mark.long)])
def test_ranks_in_any_language_of_an_mpirun_of_the_owners_own(world: AgentWorld, name: str) -> None:
    """MPICH's mpirun can't start ranks through another program."""
    said = 'echo " I AM $RANK $LOCAL_RANK $SM_CURRENT_HOST"; test $RANK != 3 || exit 4'
    reports = run(world, install_or_skip(name), *own_mpirun(install_or_skip(name), "/bin/sh", "-c", said))
    world.leave()
    ends = {rank.rank: rank.exit_code for rank in all_ranks(reports)}
    assert ends[3] == 4
    assert " I AM 3 1 algo-2\n" in world.log(0)


@pytest.mark.parametrize(
    ("name", "mapping"),
    [
        ("openmpi4", ("--map-by", "node")),
        pytest.param("openmpi5", ("--map-by", "node"), marks=pytest.mark.long),
        pytest.param("impi", ("-ppn", "1"), marks=pytest.mark.long),
    ],
)
def test_ranks_on_other_nodes_than_the_jobs_dont_begin(world: AgentWorld, name: str, mapping: tuple[str, ...]) -> None:
    """The status, the ranks' output and the operator's stops all use the job's numbering."""
    ran = world.folder / "ran"
    ran.mkdir()
    command = ("mpirun", "-np", str(NODES * PROCS), *mapping, "/bin/sh", "-c", f"touch {ran}/$RANK; sleep 60")
    reports = run(world, install_or_skip(name), *command)
    problems = [report.problem for report in reports if report.problem is not None]
    assert problems
    assert {problem.reason for problem in problems} == {EndReason.WORLD_SIZE_MISMATCH}
    assert all("ranks numbered node by node" in problem.message for problem in problems)
    # 0 is on node 0, and 5 on node 2, however they are numbered
    assert {path.name for path in ran.iterdir()} <= {"0", "5"}


def test_an_mpirun_of_the_owners_own(world: AgentWorld, mpi: Install) -> None:
    reports = run(world, mpi, *own_mpirun(mpi, sys.executable, world.write_script(SUM)))
    world.leave()
    ranks = all_ranks(reports)
    assert [(rank.rank, rank.exit_code, rank.reason) for rank in ranks] == [
        (rank, 0, None) for rank in range(NODES * PROCS)
    ]
    for rank in range(NODES * PROCS):  # mpirun prints the output
        assert f" {sum_line(rank)} " in world.log(0)
    assert reports[0].launcher is not None
    assert (reports[0].launcher.name, reports[0].launcher.exit_code) == ("mpirun", 0)


SPAWN = """
import os, sys
sys.path.append(os.environ["MPI4PY"])
from mpi4py import MPI
world, parent = MPI.COMM_WORLD, MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    parent = world.Spawn(sys.executable, args=sys.argv, maxprocs=1)
else:
    os.write(1, f" SPAWNED {world.rank} of {world.size}\\n".encode())
parent.Disconnect()
"""


@pytest.mark.long
def test_edited_code_runs_on_all_nodes(world: AgentWorld, mpi: Install) -> None:
    world.write_script(SUM)
    run(world, mpi, sys.executable, "train.py")
    edited = pack_source({"train.py": f"{SUM}\nprint('edited in', os.getcwd(), flush=True)"})
    world.send(CommandKind.START, 2, source=edited)
    world.wait(0, lambda report: report.attempt == 2 and report.phase == AgentPhase.ENDED)
    world.send(CommandKind.STOP, 2, grace=2.0)
    for node in range(NODES):
        world.wait(node, lambda report: report.attempt == 2 and report.phase == AgentPhase.ENDED)
    world.leave()
    lines = [line for node in range(NODES) for line in world.log(node).splitlines() if "edited in" in line]
    assert len(lines) == NODES * PROCS
    assert all("/source/" in line for line in lines)


def test_processes_that_ranks_spawn_are_a_world_of_their_own(world: AgentWorld) -> None:
    """As with mpi4py.futures. Other implementations' own spawning over several nodes ends in their own errors."""
    command = ("mpirun", "-np", str(NODES * PROCS), "--oversubscribe", sys.executable, world.write_script(SPAWN))
    reports = run(world, install_or_skip("openmpi4"), *command)
    world.leave()
    assert [rank.exit_code for rank in all_ranks(reports)] == [0] * NODES * PROCS, world.log(0)
    assert [report.problem for report in reports] == [None] * NODES
    assert " SPAWNED 0 of 1\n" in world.log(0)
