import pytest

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.backends.local.environment import (
    MissingVariable,
    PythonHome,
    build_agent_environment,
    inherit,
    put_python_on_path,
    resolve_variables,
)
from support.valid_jobs import make_job

OWN = PythonHome("/muster/bin", virtual=True, has_torch=True)


def test_another_runs_rendezvous_is_dropped_and_named() -> None:
    inherited = inherit(
        {
            "HOME": "/home/me",
            "WANDB_API_KEY": "x",
            "HF_HOME": "/hf",
            "RANK": "3",
            "WORLD_SIZE": "4",
            "ROLE_RANK": "3",
            "MASTER_KEY": "mine",
            "MASTER_ADDR": "head",
            "PET_NNODES": "2",
            "TORCHELASTIC_RUN_ID": "none",
            "OMPI_COMM_WORLD_RANK": "3",
            "MUSTER_RUN_DIR": "/elsewhere",
            "SM_HOSTS": "[]",
            "MUSTER_GIT_TOKEN": "secret",
        }
    )
    assert inherited.variables == {"HOME": "/home/me", "WANDB_API_KEY": "x", "HF_HOME": "/hf", "MASTER_KEY": "mine"}
    assert inherited.dropped_names == (
        "MASTER_ADDR",
        "MUSTER_RUN_DIR",
        "OMPI_COMM_WORLD_RANK",
        "PET_NNODES",
        "RANK",
        "ROLE_RANK",
        "SM_HOSTS",
        "TORCHELASTIC_RUN_ID",
        "WORLD_SIZE",
    )


@pytest.mark.parametrize(
    ("environment", "home"),
    [
        ({"PATH": "/usr/bin", "VIRTUAL_ENV": "/mine"}, OWN),
        ({"PATH": "/usr/bin", "CONDA_PREFIX": "/conda"}, OWN),
        ({"PATH": "/muster/bin:/usr/bin"}, OWN),
        ({"PATH": "/usr/bin"}, PythonHome("/muster/bin", virtual=False, has_torch=True)),
        ({"PATH": "/usr/bin"}, PythonHome("/muster/bin", virtual=True, has_torch=False)),
    ],
)
def test_python_means_what_the_user_means(environment: dict[str, str], home: PythonHome) -> None:
    assert put_python_on_path(environment, home) is None


def test_without_an_environment_python_is_the_one_with_torch() -> None:
    assert put_python_on_path({"PATH": "/usr/bin"}, OWN) == {"PATH": "/muster/bin:/usr/bin"}
    assert put_python_on_path({}, OWN) == {"PATH": "/muster/bin"}


def job(**env: str) -> Job:
    variables: list[JSON] = [{"name": name, "value": value} for name, value in env.items()]
    return make_job("vit", {"launcher": {"direct": {}}, "command": ["train"], "env": variables})


def test_ranks_share_the_cores_unless_the_user_says_otherwise() -> None:
    assert build_agent_environment({}, job(), 4, (), 8)["OMP_NUM_THREADS"] == "2"
    assert build_agent_environment({}, job(), 16, (), 8)["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in build_agent_environment({}, job(), 1, (), 8)
    assert build_agent_environment({"OMP_NUM_THREADS": "5"}, job(), 4, (), 8)["OMP_NUM_THREADS"] == "5"
    assert (
        build_agent_environment({"OMP_NUM_THREADS": "5"}, job(OMP_NUM_THREADS="6"), 4, (), 8)["OMP_NUM_THREADS"] == "6"
    )


def test_a_node_sees_its_gpus_and_the_jobs_variables() -> None:
    environment = build_agent_environment({"A": "mine"}, job(A="job's", B=""), 1, ("2", "3"), 8)
    assert environment == {"A": "job's", "B": "", "CUDA_VISIBLE_DEVICES": "2,3"}


def taken(**reference: JSON) -> Job:
    variables: list[JSON] = [
        {"name": "A", "value": "1"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token", **reference}}},
    ]
    return make_job("vit", {"launcher": {"direct": {}}, "command": ["train"], "env": variables})


def test_a_clusters_variable_is_the_users_own_here() -> None:
    resolved = resolve_variables(taken(), {"TOKEN": "secret", "A": "mine"})
    assert build_agent_environment({}, resolved, 1, (), 8) == {"A": "1", "TOKEN": "secret"}


def test_the_message_names_an_unset_variable_of_a_cluster() -> None:
    with pytest.raises(MissingVariable) as missing:
        resolve_variables(taken(), {"A": "mine"})
    assert str(missing.value) == (
        "spec.env[1].valueFrom: TOKEN is not in your environment, where `muster run` takes it from;"
        " export TOKEN=... first"
    )


def test_what_is_optional_on_a_cluster_is_optional_here() -> None:
    assert build_agent_environment({}, resolve_variables(taken(optional=True), {}), 1, (), 8) == {"A": "1"}
    with pytest.raises(MissingVariable):
        resolve_variables(taken(optional=False), {})
