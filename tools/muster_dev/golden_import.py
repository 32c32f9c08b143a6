"""Prints the jobs that `muster import` builds from launch scripts.

Tests compare the jobs with the SageMaker SDK's requests. The output is a JSON object: each key is the path of
a job's file, each value the job as YAML.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.api.document import JSON
from muster.cli.import_script import ImportOptions, import_script

JOBS_FOLDER = "tests/unit/render/sagemaker/jobs"
GOLDEN_FOLDER = "tests/unit/render/sagemaker/golden"
ROLE = "arn:aws:iam::111122223333:role/SageMakerRole"

OPTIONS = ImportOptions(
    script="launch.py",
    arguments=(),
    python=None,
    environment=(),
    source=None,
    region="us-west-2",
    account="111122223333",
    role=ROLE,
    timeout_seconds=60,
)

SCRIPT_HEAD = """\
import sagemaker
from sagemaker.estimator import Estimator
from sagemaker.huggingface import HuggingFace
from sagemaker.inputs import TrainingInput
from sagemaker.instance_group import InstanceGroup
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow

role = sagemaker.get_execution_role()
"""

TRAINER_SCRIPT = """\
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, InputData, SourceCode
from sagemaker.train.distributed import MPI, SMP, Torchrun

trainer = ModelTrainer(
    training_image="763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0.1-gpu-py310",
    role="arn:aws:iam::111122223333:role/SageMakerRole",
    base_job_name="{name}",
    source_code=SourceCode(source_dir="src", entry_script="train.py"),
    distributed={distributed},
    compute=Compute(instance_type="ml.p4d.24xlarge", instance_count=2),
    hyperparameters={{"epochs": 10, "batch_size": 32, "lr": 3e-05, "gamma": 0.7}},
)
trainer.train(input_data_config=[InputData(channel_name="train", data_source="s3://my-bucket/train")])
"""

DISTRIBUTED_ARGUMENTS = {
    "plain": "None",
    "mpi": "MPI()",
    "torchrun": "Torchrun()",
    "torchrun_smp": "Torchrun(smp=SMP(hybrid_shard_degree=2, tensor_parallel_degree=4))",
}
"""ModelTrainer's argument `distributed` in each case of SDK 3."""

REJECTED_CASE = "plain_spot_and_warmpool"
"""A case that muster refuses, because SageMaker rejects the SDK's request for it."""

_INPUT_ARGUMENTS = {
    "S3Uri": "s3_data",
    "S3DataDistributionType": "distribution",
    "ContentType": "content_type",
    "InputMode": "input_mode",
}


def build_scripts(golden_folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the script of each case. `golden_folder` has the requests."""
    cases: dict[str, dict[str, JSON]] = json.loads((golden_folder / "cases.json").read_text(encoding="utf-8"))
    for name, case in cases.items():
        yield name, build_estimator_script(name, case)
    for name, distributed in DISTRIBUTED_ARGUMENTS.items():
        yield f"v3_{name}", TRAINER_SCRIPT.format(name=f"golden-{name}", distributed=distributed)


def build_estimator_script(name: str, case: Mapping[str, JSON]) -> str:
    """Build a launch script for a golden case. All estimators except `Estimator` have a source folder."""
    estimator, arguments = str(case["estimator"]), case["kwargs"]
    code: dict[str, JSON] = {"entry_point": "train.py", "source_dir": "src"} if estimator != "Estimator" else {}
    all_arguments = {**code, **arguments} if isinstance(arguments, dict) else code
    values = "".join(f"    {key}={to_source(value)},\n" for key, value in all_arguments.items())
    job = f"golden-{name.replace('_', '-')}"
    inputs = to_source(case["inputs"])
    return (
        f"{SCRIPT_HEAD}estimator = {estimator}(\n    role=role,\n{values})\nestimator.fit({inputs}, job_name={job!r})\n"
    )


def to_source(value: JSON) -> str:
    """Return a value as Python source, with the constructors of the SDK's classes."""
    if isinstance(value, list):
        return f"[{', '.join(map(to_source, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    fields = {key: item for key, item in value.items() if key != "__type__"}
    match value.get("__type__"):
        case "InstanceGroup":
            return f"InstanceGroup({_format_arguments(fields)})"
        case "TrainingInput":
            return f"TrainingInput({_format_arguments(_convert_input_arguments(fields['config']))})"
    return f"{{{', '.join(f'{key!r}: {to_source(item)}' for key, item in value.items())}}}"


def _format_arguments(fields: Mapping[str, JSON]) -> str:
    return ", ".join(f"{name}={to_source(value)}" for name, value in fields.items())


def _convert_input_arguments(config: JSON) -> dict[str, JSON]:
    """Convert an entry of InputDataConfig, or one of its nested structures, to arguments of TrainingInput."""
    result: dict[str, JSON] = {}
    for name, value in config.items() if isinstance(config, dict) else ():
        if isinstance(value, dict):
            result.update(_convert_input_arguments(value))
        elif name != "S3DataType":
            result[_INPUT_ARGUMENTS[name]] = value
    return result


def create_code_folder(folder: Path) -> None:
    """Create the source folder of the scripts, with the training script of the golden jobs."""
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("print('trained')\n", encoding="utf-8")


def main() -> None:
    """Print all jobs."""
    texts_by_path: dict[str, str] = {}
    golden_folder = Path(GOLDEN_FOLDER).absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        create_code_folder(Path(folder))
        for name, script in build_scripts(golden_folder):
            if name != REJECTED_CASE:
                texts_by_path[f"{JOBS_FOLDER}/{name}.yaml"] = import_job(script)
    sys.stdout.write(json.dumps(texts_by_path))


def import_job(script: str) -> str:
    """Import a script and return its job as YAML."""
    Path(OPTIONS.script).write_text(script, encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as text:
        if import_script(OPTIONS) != 0:
            sys.exit(1)
    return text.getvalue()


if __name__ == "__main__":
    main()
