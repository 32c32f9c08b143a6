"""A rank's place in its world, mpirun's command lines and settings, and the file of a node's variables."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract.mpi import Mpi
from muster_worker.contract.schema import Launcher
from muster_worker.mpi import node_file, rank_start, world_variables
from muster_worker.mpi.environment import build_daemon_environment, build_mpirun_environment, build_node_variables
from muster_worker.mpi.implementations import World, build_launch_command, is_user_mpirun, parse_implementation
from muster_worker.mpi.mpirun_variables import SETTINGS, MpirunSetup, build_mpirun_variables
from support.node_builders import make_node_context, make_plan

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_RANK": "3",
}
HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


@pytest.mark.parametrize("variables", [OPEN_MPI, HYDRA, {"PMIX_RANK": "3"}])
def test_position(variables: dict[str, str]) -> None:
    position = world_variables.find_position(variables, 2, 2)
    assert position is not None
    assert (position.rank, position.size, position.local_rank, position.local_size) == (3, 4, 1, 2)


@pytest.mark.parametrize("variables", [{}, {"RANK": "3"}, {"PMI_RANK": "x"}])
def test_no_position(variables: dict[str, str]) -> None:
    assert world_variables.find_position(variables, 2, 2) is None


@pytest.mark.parametrize("mark", [{"PMI_SPAWNED": "1"}, {"OMPI_PARENT_PORT": "3865247745.0:2399568264"}])
def test_who_was_spawned_by_a_rank_is_no_rank(mark: dict[str, str]) -> None:
    of_a_node = {node_file.NODE_FILE_VARIABLE: "/run/node.env", **OPEN_MPI}
    assert rank_start.is_rank({**of_a_node, "PMI_SPAWNED": "0"})
    assert not rank_start.is_rank({**of_a_node, **mark})


@pytest.mark.parametrize(
    ("size", "local_size", "sentence"),
    [
        (4, 2, None),
        (4, 4, "mpirun gave a world of 4 ranks on one node; the job asks for 2 nodes x 2 ranks"),
        (2, 1, "mpirun gave a world of 2 ranks with 1 on one of its nodes; the job asks for 2 nodes x 2 ranks"),
        (1, 1, "mpirun gave a world of 1 rank on one node; the job asks for 2 nodes x 2 ranks"),
    ],
)
def test_another_world(size: int, local_size: int, sentence: str | None) -> None:
    assert world_variables.describe_mismatch(size, local_size, 2, 2) == sentence


@pytest.mark.parametrize(("rank", "node"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_ranks_are_numbered_node_by_node(rank: int, node: int) -> None:
    assert world_variables.describe_placement_mismatch(rank, node, 2) is None
    elsewhere = world_variables.describe_placement_mismatch(rank, 1 - node, 2)
    assert elsewhere is not None
    assert elsewhere.startswith(f"mpirun started rank {rank} on node {1 - node} instead of node {node}: ")
    assert "ppr:2:node" in elsewhere


@pytest.mark.parametrize(
    ("said", "whose"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/", Mpi.OPEN_MPI),
        ("mpirun (Open MPI) 5.0.11\n", Mpi.OPEN_MPI),
        ("prterun (PRRTE) 3.0.11\n", Mpi.OPEN_MPI),
        ("HYDRA build details:\n    Version:    5.0.2\n", Mpi.MPICH),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626", Mpi.INTEL_MPI),
        ("slurm 24.05\n", None),
        ("", None),
    ],
)
def test_whose_mpirun(said: str, whose: str | None) -> None:
    assert parse_implementation(said) == whose


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (Mpi.OPEN_MPI, "mpirun --hostfile /o -np 6 --map-by ppr:2:node -x A rank"),
        (Mpi.MPICH, "mpirun -f /h -n 6 -ppn 2 -genvnone -x A rank"),
        (Mpi.INTEL_MPI, "mpirun -f /h -n 6 -ppn 2 -genvnone -x A rank"),
    ],
)
def test_command_lines(kind: str, line: str) -> None:
    assert " ".join(build_launch_command(kind, World(3, 2, "/o", "/h"), ("-x", "A"), ("rank",))) == line


@pytest.mark.parametrize(("program", "own"), [("mpirun", True), ("/opt/x/bin/mpiexec.hydra", True), ("python", False)])
def test_a_command_that_is_an_mpirun(program: str, own: bool) -> None:  # noqa: FBT001 - a table
    assert is_user_mpirun(make_plan(program, "x", launcher=Launcher.MPI)) is own


def test_the_transport_is_ours_and_the_rest_the_owners() -> None:
    start = MpirunSetup("/run/remote", "/o", "/h", 8, is_root=True)
    set_by_image = {"OMPI_MCA_plm_rsh_agent": "ssh", "HYDRA_ENV": "all", "OMPI_ALLOW_RUN_AS_ROOT": "0"}
    values = {**set_by_image, **build_mpirun_variables(start, set_by_image)}
    assert values["OMPI_MCA_plm_rsh_agent"] == "/run/remote"
    assert (values["HYDRA_ENV"], values["OMPI_ALLOW_RUN_AS_ROOT"]) == ("all", "0")
    assert values["I_MPI_PERHOST"] == "8"


def test_an_images_older_name_of_the_transport_is_ours_too() -> None:
    start = MpirunSetup("/run/remote", "/o", "/h", 8, is_root=True)
    assert build_mpirun_variables(start, {"OMPI_MCA_orte_rsh_agent": "ssh"})["OMPI_MCA_orte_rsh_agent"] == "/run/remote"
    assert "OMPI_MCA_orte_rsh_agent" not in build_mpirun_variables(start, {})


def test_root_is_allowed_as_root_only() -> None:
    values = build_mpirun_variables(MpirunSetup("/run/remote", "/o", "/h", 8, is_root=False), {})
    assert not any("ROOT" in name for name in values)


def test_every_setting_says_why_and_where_from() -> None:
    assert all(setting.reason and setting.source for setting in SETTINGS)
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)


@pytest.mark.parametrize("command", [("python", "train.py"), ("mpirun", "python", "train.py")])
def test_nothing_of_one_node_is_in_mpiruns_environment(command: tuple[str, ...]) -> None:
    """Intel's mpirun sends it to all ranks."""
    plan = make_plan(*command, launcher=Launcher.MPI)
    base = {"PATH": "/bin", "RANK": "7", "MUSTER_X": "1", "MINE": "1"}
    first, second = (build_mpirun_environment(base, make_node_context(plan, node), is_root=True) for node in range(2))
    assert first == second
    assert first["MINE"] == "1"
    assert "RANK" not in first
    assert "SM_CURRENT_HOST" not in first
    assert {name for name in first if name.startswith("MUSTER_")} <= {node_file.FIRST_NODE_FILE_VARIABLE, "MUSTER_HOOK"}


def test_mpirun_does_not_send_the_name_of_an_interface_that_another_node_calls_otherwise() -> None:
    """Open MPI sends its own variables to all ranks, Intel's mpirun all variables; each rank's wrapper sets its
    node's.
    """
    context = make_node_context(make_plan("mpirun", "train", launcher=Launcher.MPI), 0)
    alike = replace(context, peers=tuple(replace(peer, interface="eth0") for peer in context.peers))
    mixed = replace(alike, peers=(alike.peers[0], replace(alike.peers[1], interface="ens5")))
    names = {"OMPI_MCA_btl_tcp_if_include", "NCCL_SOCKET_IFNAME", "FI_TCP_IFACE", "SM_NETWORK_INTERFACE_NAME"}
    assert names <= build_mpirun_environment({}, alike, is_root=True).keys()
    assert not names & build_mpirun_environment({}, mixed, is_root=True).keys()
    base = {"NCCL_SOCKET_IFNAME": "e"}
    assert build_mpirun_environment(base, mixed, is_root=True)["NCCL_SOCKET_IFNAME"] == "e"
    assert names <= build_node_variables({}, mixed).keys()


def test_a_node_is_identified_by_its_daemons_variables() -> None:
    context = make_node_context(make_plan("true", launcher=Launcher.MPI))
    environment = build_daemon_environment({"PATH": "/bin"}, context)
    assert environment[node_file.NODE_FILE_VARIABLE] == "/run/muster/node.env"
    assert environment["SM_CURRENT_HOST"] == "algo-2"
    variables = build_node_variables({"PATH": "/bin"}, context)
    assert (variables[node_file.NODE_VARIABLE], variables[node_file.PROCS_PER_NODE_VARIABLE]) == ("1", "2")
    assert "PATH" not in build_node_variables({"PATH": "/bin"}, context)


def test_mpich_copies_through_shared_memory_where_no_rank_may_read_anothers() -> None:
    context = make_node_context(make_plan("true", launcher=Launcher.MPI))
    barred = replace(context, host=replace(context.host, memory_unreadable=True))
    name = "MPIR_CVAR_CH4_CMA_ENABLE"
    assert (build_node_variables({}, barred)[name], build_daemon_environment({}, barred)[name]) == ("0", "0")
    assert build_daemon_environment({name: "1"}, barred)[name] == "1"
    assert name not in build_node_variables({}, context)


NAMES = st.text("ABCDEFGH_", min_size=1, max_size=8)


@given(variables=st.dictionaries(NAMES, st.text(st.characters(exclude_characters="\0", codec="utf-8"))))
def test_a_node_file_says_what_was_written(variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    run = str(tmp_path_factory.mktemp("run"))
    node_file.write(run, variables)
    assert Path(node_file.get_path(run)).stat().st_mode & 0o777 == 0o600
    assert node_file.read({node_file.FIRST_NODE_FILE_VARIABLE: node_file.get_path(run)}) == variables


def test_ranks_see_their_own_node_and_their_owners_word(tmp_path: Path) -> None:
    node = {
        "SM_CURRENT_HOST": "algo-2",
        "MUSTER_RUN_DIR": "/run/2",
        node_file.NODE_VARIABLE: "1",
        node_file.NODES_VARIABLE: "2",
        node_file.PROCS_PER_NODE_VARIABLE: "2",
    }
    node_file.write(str(tmp_path), {**node, "NCCL_DEBUG": "INFO"})
    fields = {
        **HYDRA,
        "NCCL_DEBUG": "WARN",
        "MUSTER_RUN_DIR": "/run/1",
        node_file.NODE_FILE_VARIABLE: node_file.get_path(str(tmp_path)),
    }
    seen = rank_start.add_world_variables(fields, ("--master=fd00::1:29501",))
    assert (seen["SM_CURRENT_HOST"], seen["MUSTER_RUN_DIR"], seen["NCCL_DEBUG"]) == ("algo-2", "/run/2", "WARN")
    assert (seen["RANK"], seen["LOCAL_RANK"], seen["WORLD_SIZE"], seen["LOCAL_WORLD_SIZE"]) == ("3", "1", "4", "2")
    assert (seen["MASTER_ADDR"], seen["MASTER_PORT"]) == ("fd00::1", "29501")
    assert rank_start.describe_mismatch(seen) is None
    assert rank_start.describe_mismatch({**seen, "MPI_LOCALNRANKS": "4"}) is not None
    assert rank_start.describe_mismatch({**seen, "PMI_RANK": "1"}) == world_variables.describe_placement_mismatch(
        1, 1, 2
    )
