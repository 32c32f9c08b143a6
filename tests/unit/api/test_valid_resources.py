"""Valid resources, and the resulting jobs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.document import JSON, Document
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.validation.rules.interfaces import find_interface_problem
from muster.api.validation.validate import is_job, validate
from muster.api.yaml.load import load_documents
from muster.api.yaml.serialise import serialise_resource as as_resource
from muster.api.yaml.serialise import serialise_status, to_yaml
from support.rows import check_rows
from support.valid_jobs import make_job
from unit.api.api_resources import full_resource, problems, resource, spec


def test_the_smallest_job_has_its_defaults() -> None:
    job = make_job("digits", {"launcher": {"direct": {}}, "command": ["python", "train.py"]})
    assert (job.spec.nodes, job.spec.procs_per_node, job.spec.startup_timeout_seconds) == (1, "Auto", 900)
    assert (job.metadata.namespace, job.spec.network.interface, job.spec.checkpoint) == ("default", "Auto", None)


def test_a_job_written_as_yaml_is_read_back_equal() -> None:
    job = validate(Document(full_resource()))
    (again,) = load_documents(to_yaml(as_resource(job)), "written")
    assert validate(again) == job
    assert is_job(again)


TEXTS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
ODD = st.sampled_from(
    ["y", "no", "1e3", "3e-5", "010", "0o7", "1_000", ".inf", "~", "", "null", "2001-01-01", "1:30", "<<"]
)
VALUES = TEXTS | ODD | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e15, 1e15) | st.floats(0, 1e-9)


@settings(deadline=None)
@given(st.dictionaries(ODD.filter(bool) | st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=5))
def test_hyperparameters_survive_being_written_and_read(hyperparameters: dict[str, JSON]) -> None:
    (sent,) = load_documents(to_yaml(resource(spec=spec(hyperparameters=hyperparameters))), "written")
    job = validate(sent)
    (again,) = load_documents(to_yaml(as_resource(job)), "written again")
    assert validate(again) == job
    assert set(job.spec.hyperparameters) == set(hyperparameters)
    for name, value in hyperparameters.items():
        kept = job.spec.hyperparameters[name]
        assert kept == value
        assert isinstance(kept, str | bool) == isinstance(value, str | bool)


A_VALID_SPEC_IS_ACCEPTED_ROWS: list[dict[str, JSON]] = [
    {"env": None, "inputs": None, "metrics": None, "checkpoint": None, "network": None, "nodes": None},
    {"launcher": {"torchrun": {"args": None}, "direct": None}},
    {"nodes": 100, "procsPerNode": 128},
    {"command": ["bash", "-c", "torchrun train.py"]},
    {"command": ["torchrun", "train.py"], "launcher": {"perNode": {}}},
    {"command": ["mpirun", "-np", "2", "./train"], "launcher": {"perNode": {}}},
    {"env": [{"name": "HYDRA_LAUNCHER", "value": "ssh"}]},
    {"env": [{"name": "OMPI_MCA_btl", "value": "self,tcp"}], "launcher": {"mpi": {}}},
    {"command": ["/usr/bin/mpiexec", "-n", "4", "./train"], "launcher": {"mpi": {"implementation": "MPICH"}}},
    {"command": ["mpirun", "-n", "1", "./a", ":", "-n", "3", "./b"], "launcher": {"mpi": {}}},
    {"command": ["mpirun", "./train", "-n", "2"], "launcher": {"mpi": {}}},
    {"command": ["mpirun", "--of-another-version", "-n", "2", "./train"], "launcher": {"mpi": {}}},
    {"command": ["mpirun", "-n", "2", "./train"], "launcher": {"mpi": {}}, "procsPerNode": "Auto"},
    {"command": ["mpirun", "--hostfile", "/code/hosts", "-np"], "launcher": {"mpi": {}}},
    {"command": ["/opt/my tools/train", "a b"]},
    {"command": ["python", "train.py", "-m", "torch.distributed.run"]},
    {"command": ["python", "-m", "torch.distributed.run", "train.py"], "launcher": {"perNode": {}}},
    {"launcher": {"mpi": {"args": ["--oversubscribe"]}}},
    {"nodePool": {"instanceType": "Standard_ND96isr_H100_v5"}},
    {"launcher": {"mpi": {"args": ["-x", "NCCL_DEBUG=INFO", "--mca", "pml", "ucx", "--bind-to", "none"]}}},
    {"launcher": {"mpi": {"implementation": "IntelMPI", "args": ["-genv", "I_MPI_DEBUG", "5", "-map-by", "core"]}}},
    {"launcher": {"torchrun": {"args": ["--tee", "3", "--role=worker", "--local-addr", "10.0.0.1"]}}},
    {"metrics": [{"name": "loss", "regex": r"(?P<x>[0-9]+)\s*[+*]\)(?:a|b)c{2,3}"}]},
    {"metrics": [{"name": "loss", "regex": r"[]+(]*([^]]+)\(.*"}]},
    {"inputs": [{"name": "a.b-c", "volume": {"hostPath": {"path": "/"}}}]},
    {"checkpoint": {}},
    {"checkpoint": {"s3": "s3://data.example-1/a/b c/ä"}, "output": {"s3": "s3://data"}},
    {"inputs": [{"name": "a", "s3": {"uri": "s3://data/a..b/", "distribution": "ShardedByS3Key"}}]},
    {"source": {"inline": {"files": {"train.py": "", "lib/ä b.py": "x = 1\n"}}}},
    {"source": {"configMap": {"name": "code.v1"}}},
    {"source": {"git": {"url": "https://git.example:8443/a/b-c_d.git", "commit": "0a" * 20, "path": "a b/c.d"}}},
    {"source": {"s3": {"uri": "s3://data/sourcedir.tar.gz"}}},
    {"checkpoint": {"volume": {"hostPath": {"path": "/data/checkpoints"}}}},
    {"env": [{"name": "SM_MODEL_DIR", "value": "/m"}, {"name": "RANKS"}, {"name": "NCCL_DEBUG", "value": "INFO"}]},
]


def test_a_valid_spec_is_accepted() -> None:
    def check(changes: dict[str, JSON]) -> None:
        assert problems(resource(spec=spec(**changes))) == []

    check_rows(A_VALID_SPEC_IS_ACCEPTED_ROWS, check)


def test_what_came_from_the_cluster_is_accepted() -> None:
    metadata: JSON = {
        "name": "digits",
        "namespace": "a",
        "uid": "u",
        "generation": 3,
        "creationTimestamp": None,
        "managedFields": [],
        "annotations": {"a": "b"},
    }
    job = validate(Document(resource(metadata=metadata, status={"phase": "Running", "unknown": 1})))
    assert (job.metadata.uid, job.metadata.generation) == ("u", 3)


@pytest.mark.parametrize(
    "text",
    [
        "Auto",
        "eth1",
        "eth0,eth1",
        "^docker0,lo",
        "10.0.0.0/16",
        "10.1.2.3/16",
        "fd00::/8",
        "br-1a.5@x",
        "eth*",
        "ib*,eth0",
        "^docker*,lo",
    ],
)
def test_interfaces(text: str) -> None:
    assert find_interface_problem(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "eth0,",
        "^",
        "",
        "^eth0,^lo",
        "10.0.0.0/16,10.1.0.0/16",
        "a" * 16,
        "10.0.0.0/+8",
        "fe80::%1/64",
        "*",
        "^*",
        "e*h",
        "eth**",
        "=eth0",
    ],
)
def test_no_interfaces(text: str) -> None:
    assert find_interface_problem(text) is not None


def test_a_status_leaves_out_what_is_not_known() -> None:
    assert serialise_status(Status(phase="Running")) == {"observedGeneration": 0, "phase": "Running", "attempt": 0}
    assert Job.model_validate({"metadata": {"name": "a"}, "spec": make_job("a", spec()).spec}).metadata.name == "a"
