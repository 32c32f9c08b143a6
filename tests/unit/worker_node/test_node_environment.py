import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract import schema
from muster_worker.contract.rendezvous import is_rendezvous_variable
from muster_worker.contract.schema import Scalar
from muster_worker.launchers.environment import build_node_environment
from muster_worker.launchers.registry import find_launcher
from muster_worker.sagemaker.arguments import to_arguments, to_text
from muster_worker.sagemaker.container import build_input_data_config
from support.node_builders import make_node_context, make_plan

NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,20}", fullmatch=True)


@pytest.mark.parametrize(
    ("hyperparameters", "arguments"),
    [
        ({}, ()),
        ({"lr": 3e-5}, ("--lr", "3e-05")),
        ({"epochs": 10, "b": 2}, ("-b", "2", "--epochs", "10")),
        ({"nesterov": True, "amp": False}, ("--amp", "False", "--nesterov", "True")),
        ({"name": "010", "empty": ""}, ("--empty", "", "--name", "010")),
    ],
)
def test_arguments_are_those_of_sagemaker(hyperparameters: dict[str, Scalar], arguments: tuple[str, ...]) -> None:
    assert to_arguments(hyperparameters) == arguments


@pytest.mark.parametrize(
    ("value", "text"), [("a b", "a b"), (True, "true"), (3e-5, "3e-05"), ({"b": 1, "a": []}, '{"a":[],"b":1}')]
)
def test_values_of_variables_are_those_of_sagemaker(value: object, text: str) -> None:
    assert to_text(value) == text


@given(st.dictionaries(NAMES, st.text(max_size=20)))
def test_what_the_user_set_is_never_lost(base: dict[str, str]) -> None:
    kept = {name: value for name, value in base.items() if not is_rendezvous_variable(name)}
    environment = build_node_environment(base, make_node_context())
    assert {name: environment[name] for name in kept} == kept


@pytest.mark.parametrize(
    "name",
    ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS", "SM_HPS", "SM_MODEL_DIR", "PYTHONUNBUFFERED"],
)
def test_the_users_value_wins(name: str) -> None:
    assert build_node_environment({name: "mine"}, make_node_context())[name] == "mine"


def test_network_and_threads() -> None:
    environment = build_node_environment({}, make_node_context())
    assert environment["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert environment["GLOO_SOCKET_IFNAME"] == environment["TP_SOCKET_IFNAME"] == "eth0"
    assert environment["OMPI_MCA_btl_tcp_if_include"] == "eth0"
    assert environment["OMP_NUM_THREADS"] == "4"
    excluding = build_node_environment({"OMPI_MCA_btl_tcp_if_exclude": "lo"}, make_node_context())
    assert "OMPI_MCA_btl_tcp_if_include" not in excluding


@pytest.mark.parametrize(
    "name", ["RANK", "MASTER_ADDR", "ROLE_RANK", "PET_NNODES", "TORCHELASTIC_RUN_ID", "MUSTER_TOKEN"]
)
def test_another_runs_rendezvous_is_removed(name: str) -> None:
    assert name not in build_node_environment({name: "stale"}, make_node_context())


@pytest.mark.parametrize("base", [{}, {"MUSTER_CHECKPOINT_DIR": "/c"}])
def test_the_checkpoint_folder_is_the_backends(base: dict[str, str]) -> None:
    assert build_node_environment(base, make_node_context())["MUSTER_CHECKPOINT_DIR"] == "/opt/ml/checkpoints"


def test_sagemaker_variables() -> None:
    environment = build_node_environment({}, make_node_context(make_plan(hyperparameters={"lr": 3e-5, "name": "x"})))
    assert json.loads(environment["SM_HOSTS"]) == ["algo-1", "algo-2"]
    assert environment["SM_CURRENT_HOST"] == "algo-2"
    assert environment["SM_CHANNEL_MY-DATA"] == "/opt/ml/input/data/my-data"
    assert environment["SM_CHANNELS"] == '["my-data","train"]'
    assert (environment["SM_HP_LR"], environment["SM_HP_NAME"]) == ("3e-05", "x")
    assert json.loads(environment["SM_RESOURCE_CONFIG"])["current_host"] == "algo-2"
    assert environment["SM_MODULE_DIR"] == "/code"


def test_a_direct_rank_has_what_torchrun_would_set() -> None:
    _, start = find_launcher(schema.Launcher.DIRECT).list_processes(make_node_context(), {}, lambda name: name)
    environment = start.environment
    assert (environment["RANK"], environment["LOCAL_RANK"], environment["WORLD_SIZE"]) == ("3", "1", "4")
    assert (environment["MASTER_ADDR"], environment["MASTER_PORT"]) == ("10.0.0.1", "29500")
    assert (environment["NODE_RANK"], environment["LOCAL_WORLD_SIZE"]) == ("1", "2")


def test_a_nodes_command_has_no_rank_of_its_own() -> None:
    context = make_node_context(make_plan(launcher=schema.Launcher.PER_NODE, procs=1))
    [start] = find_launcher(schema.Launcher.PER_NODE).list_processes(context, {}, lambda name: name)
    environment = start.environment
    assert "RANK" not in environment
    assert environment["MUSTER_RANK"] == "1"
    own = {name: value for name, value in environment.items() if name.startswith("PET_N")}
    assert own == {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "1", "PET_NODE_RANK": "1"}
    assert environment["PYTHON_EXEC"] == "/run/muster/python-exec"
    [of_more] = find_launcher(schema.Launcher.PER_NODE).list_processes(make_node_context(), {}, lambda name: name)
    assert "MUSTER_RANK" not in of_more.environment


@pytest.mark.parametrize(("user", "expected"), [(None, "/opt/ml/code"), ("/mine", "/opt/ml/code:/mine")])
def test_scripts_find_what_lies_beside_them_in_the_jobs_code(user: str | None, expected: str) -> None:
    context = make_node_context(replace(make_plan(), has_code=True))
    context = replace(context, host=replace(context.host, directory="/opt/ml/code"))
    base = {} if user is None else {"PYTHONPATH": user}
    assert build_node_environment(base, context)["PYTHONPATH"] == expected
    assert "PYTHONPATH" not in build_node_environment({}, make_node_context())


def test_a_script_can_tell_that_it_has_a_share_of_the_data() -> None:
    channels = (schema.Channel("train", is_sharded=True), schema.Channel("validation"))
    fields = {name: config["S3DistributionType"] for name, config in build_input_data_config(channels).items()}
    assert fields == {"train": "ShardedByS3Key", "validation": "FullyReplicated"}
