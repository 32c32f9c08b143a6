import pytest

from muster.api.document import JSON
from muster.api.spec import Job
from muster.api.validate import job_of
from muster.backends.local.environment import PythonHome, inherit, node_environment, with_python

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
        }
    )
    assert inherited.variables == {"HOME": "/home/me", "WANDB_API_KEY": "x", "HF_HOME": "/hf", "MASTER_KEY": "mine"}
    assert inherited.dropped == (
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
    assert with_python(environment, home) is None


def test_without_an_environment_python_is_the_one_with_torch() -> None:
    assert with_python({"PATH": "/usr/bin"}, OWN) == {"PATH": "/muster/bin:/usr/bin"}
    assert with_python({}, OWN) == {"PATH": "/muster/bin"}


def job(**env: str) -> Job:
    variables: list[JSON] = [{"name": name, "value": value} for name, value in env.items()]
    return job_of("vit", {"launcher": {"direct": {}}, "command": ["train"], "env": variables})


def test_ranks_share_the_cores_unless_somebody_said_otherwise() -> None:
    assert node_environment({}, job(), 4, (), 8)["OMP_NUM_THREADS"] == "2"
    assert node_environment({}, job(), 16, (), 8)["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in node_environment({}, job(), 1, (), 8)
    assert node_environment({"OMP_NUM_THREADS": "5"}, job(), 4, (), 8)["OMP_NUM_THREADS"] == "5"
    assert node_environment({"OMP_NUM_THREADS": "5"}, job(OMP_NUM_THREADS="6"), 4, (), 8)["OMP_NUM_THREADS"] == "6"


def test_a_node_sees_its_gpus_and_the_jobs_variables() -> None:
    environment = node_environment({"A": "mine"}, job(A="job's", B=""), 1, ("2", "3"), 8)
    assert environment == {"A": "job's", "B": "", "CUDA_VISIBLE_DEVICES": "2,3"}
