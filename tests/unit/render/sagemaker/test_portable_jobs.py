"""The request for a job with only portable fields, a role and an instance type."""

import json
from collections.abc import Mapping

import pytest

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.core.training_job.name import build_training_job_name
from muster.render.sagemaker.apply_defaults import apply_defaults
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.rank_reports import can_ranks_report
from muster.render.sagemaker.request.identity import make_job_tags
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.training_request import TrainingRequest
from unit.render.sagemaker.builders import sagemaker_job, sagemaker_spec

PLAIN: dict[str, JSON] = {"framework": None}
IMAGE: dict[str, JSON] = {"image": "img:1"}
CPU: dict[str, JSON] = {"instanceType": "ml.c5.2xlarge"}
GROUPS: dict[str, JSON] = {
    "instanceType": None,
    "instanceGroups": [{"name": name, "instanceType": "ml.p4d.24xlarge", "instanceCount": 1} for name in "ab"],
}
TORCH, MPI, PROCS = (
    "sagemaker_torch_distributed_enabled",
    "sagemaker_mpi_enabled",
    "sagemaker_mpi_num_of_processes_per_host",
)


def made(job: Job) -> TrainingRequest:
    return render_request(job, RequestSettings("us-west-2", "111122223333", "vit-0123456789-1"), load_image_facts())


def hyperparameters_of(changes: Mapping[str, JSON], block: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the toolkit's hyperparameters, decoded."""
    quiet = {"rankReports": "Off", **block}
    return {name: json.loads(value) for name, value in made(sagemaker_job(changes, quiet)).hyperparameters.items()}


def container(changes: Mapping[str, JSON], block: Mapping[str, JSON]) -> tuple[JSON, JSON]:
    fields = made(sagemaker_job(changes, block)).body["AlgorithmSpecification"]
    assert isinstance(fields, dict)
    return fields.get("ContainerEntrypoint"), fields.get("ContainerArguments")


def settings(changes: Mapping[str, JSON], block: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the start script's settings."""
    archive = made(sagemaker_job(changes, block)).archive
    assert archive is not None
    result: dict[str, JSON] = json.loads(archive.files["muster_start.json"])
    return result


@pytest.mark.parametrize(
    ("changes", "block", "expected"),
    [
        ({"launcher": {"torchrun": {}}}, {}, {TORCH: True}),
        ({"launcher": {"torchrun": {}}, "procsPerNode": 4}, {}, {TORCH: True, PROCS: 4}),
        ({"launcher": {"mpi": {}}}, {}, {MPI: True, "sagemaker_mpi_custom_mpi_options": ""}),
        ({"launcher": {"mpi": {"args": ["-x", "A=b c"]}}}, {}, {"sagemaker_mpi_custom_mpi_options": "-x 'A=b c'"}),
        ({"launcher": {"mpi": {}}, "procsPerNode": 2}, CPU, {MPI: True, PROCS: 2}),
        ({"launcher": {"mpi": {}}}, {"distribution": {"mpi": {"processesPerHost": 3}}}, {PROCS: 3}),
        ({"launcher": {"mpi": {}}, "procsPerNode": 8}, {"distribution": {"dataParallel": {}}}, {PROCS: 8}),
    ],
)
def test_the_toolkit_gets_what_it_can_do(
    changes: dict[str, JSON], block: dict[str, JSON], expected: dict[str, JSON]
) -> None:
    hyperparameters = hyperparameters_of(changes, block)
    assert hyperparameters["sagemaker_program"] == "train.py"
    assert expected.items() <= hyperparameters.items()
    assert PROCS in expected or PROCS not in hyperparameters


@pytest.mark.parametrize(
    ("changes", "block", "launcher"),
    [
        ({"launcher": {"torchrun": {}}}, CPU, "torchrun"),
        ({"launcher": {"torchrun": {}}}, GROUPS, "torchrun"),
        ({"launcher": {"torchrun": {"args": ["--log-dir=/tmp"]}}}, {}, "torchrun"),
        ({"launcher": {"direct": {}}}, {}, "direct"),
        ({"launcher": {"perNode": {}}, "command": ["bash", "-c", "ls"]}, {}, "perNode"),
        ({"launcher": {"perNode": {}}, "command": ["python", "-m", "train"]}, {}, "perNode"),
        ({"launcher": {"perNode": {}}, "command": ["python", "train.py", "--fast"]}, {}, "perNode"),
        ({"launcher": {"mpi": {}}, "command": ["./train", "--fast"]}, {}, "toolkit"),
        ({"launcher": {"torchrun": {}}, "command": ["python", "-u", "train.py"]}, {}, "toolkit"),
        ({**IMAGE, "launcher": {"torchrun": {}}}, PLAIN, "torchrun"),
        ({**IMAGE, "launcher": {"perNode": {}}}, PLAIN, "perNode"),
    ],
)
def test_all_else_muster_s_start_script_does(changes: dict[str, JSON], block: dict[str, JSON], launcher: str) -> None:
    spec = sagemaker_spec(changes, {})
    result = settings(changes, block)
    assert result["launcher"] == launcher
    assert result["command"] == spec["command"]
    assert result["procs"] == "Auto"


@pytest.mark.parametrize(
    ("changes", "block", "wanted", "agents"),
    [
        ({"launcher": {"torchrun": {}}}, CPU, "Auto", ["muster_entry.pyz"]),
        ({"launcher": {"torchrun": {}}}, CPU, "Off", []),
        ({"launcher": {"direct": {}}}, {}, "On", ["muster_entry.pyz"]),
        ({**IMAGE, "launcher": {"torchrun": {}}}, PLAIN, "Auto", ["muster_entry.pyz"]),
        ({"launcher": {"perNode": {}}, "command": ["bash", "-c", "ls"]}, {}, "Auto", []),
    ],
)
def test_the_start_script_has_the_agent_beside_it_for_ranks_that_it_starts(
    changes: dict[str, JSON], block: dict[str, JSON], wanted: str, agents: list[str]
) -> None:
    job = sagemaker_job(changes, {**block, "rankReports": wanted})
    archive = made(job).archive
    assert archive is not None
    # only the agent: the wrapper for the toolkit's programs isn't needed
    assert [name for name in archive.files if name.startswith("muster_entry")] == agents
    assert can_ranks_report(job) == bool(agents)


@pytest.mark.parametrize(
    ("command", "launcher", "program"),
    [
        (["python", "train.py"], "perNode", "train.py"),
        (["/usr/bin/python3.10", "src/train.py"], "torchrun", "src/train.py"),
        (["./train.sh"], "perNode", "train.sh"),
        (["python", "-m", "mpi4py", "train.py"], "mpi", "train.py"),
        (["python", "-m", "mpi4py", "train.py"], "torchrun", "muster_start.py"),
        (["python", "/app/train.py"], "perNode", "muster_start.py"),
        (["python", "../train.py"], "perNode", "muster_start.py"),
        (["./train.py"], "perNode", "muster_start.py"),
        (["python", "train"], "perNode", "muster_start.py"),
    ],
)
def test_the_toolkit_starts_a_file_where_that_is_the_command(command: list[str], launcher: str, program: str) -> None:
    assert (
        hyperparameters_of({"command": list(command), "launcher": {launcher: {}}}, {})["sagemaker_program"] == program
    )


def test_a_container_without_a_toolkit_runs_the_command_itself() -> None:
    changes: dict[str, JSON] = {**IMAGE, "launcher": {"perNode": {}}, "command": ["a.out", "x"], "source": None}
    assert container({**changes, "hyperparameters": {"lr": 3e-5, "on": True}}, PLAIN) == (
        ["a.out"],
        ["x", "--lr", "3e-05", "--on", "True"],
    )
    assert container({**changes, "command": ["train"]}, PLAIN) == (None, None)


def test_a_container_without_a_toolkit_gets_its_code_as_a_channel() -> None:
    job = sagemaker_job({**IMAGE, "launcher": {"torchrun": {}}}, PLAIN)
    body = made(job).body
    inputs, algorithm = body["InputDataConfig"], body["AlgorithmSpecification"]
    assert isinstance(inputs, list)
    assert isinstance(algorithm, dict)
    (channel,) = inputs
    assert isinstance(channel, dict)
    assert (channel["ChannelName"], channel.get("InputMode")) == ("code", None)
    archive = made(job).archive
    assert archive is not None
    assert archive.uri == "s3://sagemaker-us-west-2-111122223333/vit-0123456789-1/source/sourcedir.tar.gz"
    assert algorithm["ContainerEntrypoint"] == ["/bin/sh"]
    words = algorithm["ContainerArguments"]
    assert isinstance(words, list)
    assert "tar -xzf /opt/ml/input/data/code/sourcedir.tar.gz" in str(words[1])
    assert words[2:] == ["sh", "python3", "muster_start.py"]
    assert "HyperParameters" not in body


def test_code_that_comes_as_a_channel_is_a_file() -> None:
    job = sagemaker_job({**IMAGE, "launcher": {"torchrun": {}}}, {**PLAIN, "inputMode": "Pipe"})
    inputs = made(job).body["InputDataConfig"]
    assert isinstance(inputs, list)
    assert [channel["InputMode"] for channel in inputs if isinstance(channel, dict)] == ["File"]


def test_network_isolation_brings_the_code_as_a_channel() -> None:
    body = made(sagemaker_job({}, {"networkIsolation": True, "rankReports": "Off"})).body
    hyperparameters = body["HyperParameters"]
    assert isinstance(hyperparameters, dict)
    assert hyperparameters["sagemaker_submit_directory"] == '"/opt/ml/input/data/code/sourcedir.tar.gz"'
    assert body["InputDataConfig"] == [
        {
            "ChannelName": "code",
            "DataSource": {
                "S3DataSource": {
                    "S3DataType": "S3Prefix",
                    "S3Uri": "s3://sagemaker-us-west-2-111122223333/vit-0123456789-1/source/sourcedir.tar.gz",
                    "S3DataDistributionType": "FullyReplicated",
                }
            },
        }
    ]


def test_an_archive_in_s3_is_handed_on() -> None:
    job = sagemaker_job({"source": {"s3": {"uri": "s3://bucket/code.tar.gz"}}}, {"rankReports": "Off"})
    assert made(job).archive is None
    assert json.loads(made(job).hyperparameters["sagemaker_submit_directory"]) == "s3://bucket/code.tar.gz"


@pytest.mark.parametrize(
    ("output", "block", "uri", "key"),
    [
        (None, {}, "s3://sagemaker-us-west-2-111122223333/vit-0123456789-1/source/sourcedir.tar.gz", ""),
        ("s3://mine/out/", {"outputKmsKey": "k"}, "s3://mine/vit-0123456789-1/source/sourcedir.tar.gz", "k"),
        ("s3://mine/out", {"outputKmsKey": "k", "codeLocation": "s3://code/a//b/"},
         "s3://code/a/b/vit-0123456789-1/source/sourcedir.tar.gz", ""),
        ("s3://mine/out", {"outputKmsKey": "k", "codeLocation": "s3://mine"},
         "s3://mine/vit-0123456789-1/source/sourcedir.tar.gz", "k"),
    ],
)  # fmt: skip
def test_the_code_lies_where_the_sdk_puts_it(output: str | None, block: dict[str, JSON], uri: str, key: str) -> None:
    archive = made(sagemaker_job({} if output is None else {"output": {"s3": output}}, block)).archive
    assert archive is not None
    assert (archive.uri, archive.kms_key) == (uri, key)


def test_a_number_of_ranks_that_muster_found_is_not_said() -> None:
    job = sagemaker_job({"launcher": {"mpi": {}}}, {"rankReports": "Off"})
    resolved = apply_defaults(job, "us-west-2")
    assert resolved.spec.procs_per_node == 8
    assert made(resolved).body == made(job).body
    said = sagemaker_job({"launcher": {"mpi": {}}, "procsPerNode": 8}, {"rankReports": "Off"})
    assert made(apply_defaults(said, "us-west-2")).hyperparameters[PROCS] == "8"


def test_names_and_tags_tell_whose_training_job_it_is() -> None:
    job = sagemaker_job()
    long = job.metadata.model_copy(update={"name": "a" * 40, "uid": "2b7d3c1a-0000-4000-8000-000000000000"})
    name = build_training_job_name(long, 1000000)
    assert len(name) <= 63
    assert name == build_training_job_name(long, 1000000) != build_training_job_name(long, 999999)
    tagged = render_request(
        job, RequestSettings("us-west-2", "111122223333", name, tags=make_job_tags(job, 3)), load_image_facts()
    ).tags
    assert tagged["muster.dev/name"] == "vit"
    assert tagged["muster.dev/attempt"] == "3"


@pytest.mark.parametrize(
    ("changes", "block", "path", "says"),
    [
        ({"hyperparameters": {f"h{index}": 1 for index in range(95)}}, {}, "spec.hyperparameters", "found 102, 7 of"),
        ({"hyperparameters": {"text": "x" * 2500}}, {}, 'spec.hyperparameters["text"]', "found 2502 encoded"),
        ({"hyperparameters": {"sagemaker_program": "x"}}, {}, 'spec.hyperparameters["sagemaker_program"]', "itself"),
        ({"inputs": [{"name": "code", "s3": {"uri": "s3://bucket/k"}}]}, {"networkIsolation": True},
         "spec.inputs", 'found "code", which the job\'s code needs'),
        ({**IMAGE, "launcher": {"perNode": {}}, "source": None, "command": ["a", "x" * 257]}, PLAIN,
         "spec.command", "of 257 characters"),
        ({**IMAGE, "launcher": {"perNode": {}}, "source": None, "command": ["a"] * 102}, PLAIN,
         "spec.command", "found 101 words"),
        ({}, {"instanceType": "ml.trn1.32xlarge", "profiler": {"mode": "Enabled"},
              "framework": {"name": "PyTorch", "version": "1.13.1", "pythonVersion": "py38"}},
         "spec.sagemaker.profiler", "which SageMaker can't profile"),
    ],
)  # fmt: skip
def test_what_shows_only_in_the_request_is_refused(
    changes: dict[str, JSON], block: dict[str, JSON], path: str, says: str
) -> None:
    with pytest.raises(InvalidResource) as caught:
        made(sagemaker_job(changes, {"rankReports": "Off", **block}))
    (problem,) = caught.value.problems
    assert problem.path == path
    assert says in problem.message


def test_python_that_the_image_has_not_is_refused() -> None:
    block: dict[str, JSON] = {
        "instanceType": "ml.trn1.32xlarge",
        "framework": {"name": "PyTorch", "version": "1.13.1", "pythonVersion": "py310"},
    }
    with pytest.raises(InvalidResource, match=r"spec\.sagemaker\.framework\.pythonVersion: found 'py310'.*py38"):
        made(sagemaker_job({}, block))


def test_debugger_and_profiler_in_a_region_without_them() -> None:
    request_settings = RequestSettings("eu-central-2", "111122223333", "vit-0123456789-1")
    job = sagemaker_job({"image": "img:1"}, {"rankReports": "Off"})
    body = render_request(job, request_settings, load_image_facts()).body
    assert "DebugHookConfig" not in body
    assert body["ProfilerConfig"] == {"DisableProfiler": True}
    asked: tuple[dict[str, JSON], ...] = ({"debugger": {"hook": "Enabled"}}, {"profiler": {"mode": "Enabled"}})
    for block in asked:
        with pytest.raises(InvalidResource, match="found settings for eu-central-2, which has no Debugger"):
            render_request(sagemaker_job({"image": "img:1"}, block), request_settings, load_image_facts())


@pytest.mark.parametrize(
    ("rule", "image"),
    [
        ("LossNotDecreasing", "895741380848.dkr.ecr.us-west-2.amazonaws.com/sagemaker-debugger-rules:latest"),
        (
            "DetailedProfilerProcessingJobConfig-1",
            "895741380848.dkr.ecr.us-west-2.amazonaws.com/detailed-profiler-processing:latest",
        ),
    ],
)
def test_a_built_in_rule_has_sagemaker_s_image(rule: str, image: str) -> None:
    block: dict[str, JSON] = {"debugger": {"rules": [{"name": rule, "parameters": {"rule_to_invoke": rule}}]}}
    body = made(sagemaker_job({}, block)).body
    assert body["DebugRuleConfigurations"] == [
        {"RuleConfigurationName": rule, "RuleEvaluatorImage": image, "RuleParameters": {"rule_to_invoke": rule}}
    ]
    own: dict[str, JSON] = {"debugger": {"rules": [{"name": rule, "image": "mine:1"}]}}
    assert made(sagemaker_job({}, own)).body["DebugRuleConfigurations"] == [
        {"RuleConfigurationName": rule, "RuleEvaluatorImage": "mine:1"}
    ]


def test_a_built_in_rule_where_sagemaker_has_no_image_is_refused() -> None:
    block: dict[str, JSON] = {"profiler": {"rules": [{"name": "DetailedProfilerProcessingJobConfig-1"}]}}
    request_settings = RequestSettings("af-south-1", "111122223333", "vit-0123456789-1")
    with pytest.raises(InvalidResource, match=r"spec\.sagemaker\.profiler\.rules\[0\]\.image: not set"):
        render_request(sagemaker_job({}, block), request_settings, load_image_facts())
