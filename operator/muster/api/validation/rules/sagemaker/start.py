"""Rules about how SageMaker starts the job: command, code, environment and hyperparameters."""

import re
from collections.abc import Iterator

from muster.api.document import FieldPath, quote
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import list_sagemaker_blocks
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch, decide_launch, find_program_file, uses_toolkit
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.mpi.rules import is_mpirun

MAX_VARIABLES = 100
MAX_VARIABLE_CHARS = 512
"""The limits of TrainingEnvironmentMap in botocore's service model of 2017-07-24."""

_VARIABLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def _find_launches(spec: Spec) -> Iterator[Launch]:
    """Yield the job's launch on SageMaker; nothing for other backends."""
    return (decide_launch(spec) for _ in list_sagemaker_blocks(spec))


def _check_missing_code(spec: Spec) -> Iterator[Violation]:
    for launch in _find_launches(spec):
        if launch.start == "Toolkit" and spec.source is None and not launch.uses_start_script:
            yield Violation(("command",), f"{launch.program} without source")


def _check_s3_archive(spec: Spec) -> Iterator[Violation]:
    for launch in _find_launches(spec):
        if spec.source is not None and spec.source.s3 is not None and launch.uses_start_script:
            yield Violation(("source", "s3"), "an archive with a command that needs muster's start script")


def _check_script_name(spec: Spec) -> Iterator[Violation]:
    for launch in _find_launches(spec):
        files = spec.source.inline.files if spec.source is not None and spec.source.inline is not None else {}
        if START_SCRIPT in files and launch.uses_start_script:
            yield Violation(("source", "inline", "files", START_SCRIPT), "a reserved name")


def _check_container_mpi(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        has_container_command = bool(block.container_entrypoint or block.container_arguments)
        if block.start == "Channels" and find_program_file(spec.command) is not None:
            continue  # muster's start script runs the toolkit in the image.
        if (
            spec.launcher.mpi is not None
            and not has_container_command
            and not (uses_toolkit(block) and block.framework is not None)
        ):
            yield Violation(("launcher", "mpi"), "mpi without sagemaker.framework")


def _check_mpi_implementation(spec: Spec) -> Iterator[Violation]:
    for _ in list_sagemaker_blocks(spec):
        mpi = spec.launcher.mpi
        if mpi is None:
            continue
        if mpi.implementation in ("IntelMPI", "MPICH"):
            yield Violation(("launcher", "mpi", "implementation"), mpi.implementation)
        if is_mpirun(spec.command[0]):
            yield Violation(("command", 0), quote(spec.command[0]))


def _check_entrypoint(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        container_command = (*block.container_entrypoint, *block.container_arguments)
        if container_command and not uses_toolkit(block) and container_command != spec.command:
            yield Violation(("sagemaker", "containerEntrypoint"), "a different command than spec.command")


def _check_variables(spec: Spec) -> Iterator[Violation]:
    if spec.backend != "SageMaker":
        return
    if len(spec.env) > MAX_VARIABLES:
        yield Violation(("env",), f"{len(spec.env)} variables")
    for index, variable in enumerate(spec.env):
        path: FieldPath = ("env", index)
        if not _VARIABLE.fullmatch(variable.name) or len(variable.name) > MAX_VARIABLE_CHARS:
            yield Violation((*path, "name"), quote(variable.name))
        if len(variable.value) > MAX_VARIABLE_CHARS:
            yield Violation((*path, "value"), f"{len(variable.value)} characters")


def _check_references(spec: Spec) -> Iterator[Violation]:
    for _ in list_sagemaker_blocks(spec):
        for index, variable in enumerate(spec.env):
            if variable.value_from is not None:
                yield Violation(("env", index, "valueFrom"), "a reference")


def _check_duplicate_hyperparameters(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        for name in block.raw_hyperparameters:
            if name in spec.hyperparameters:
                yield Violation(("sagemaker", "rawHyperparameters", name), "a name that spec.hyperparameters has too")


START_RULES = (
    Rule(
        schema_paths=("spec.command",),
        rationale="SageMaker's toolkit starts a file of the source archive.",
        message="set spec.source; for a program in the image use its absolute path: python, /app/train.py",
        find_violations=_check_missing_code,
    ),
    Rule(
        schema_paths=("spec.source",),
        rationale="muster can't add its start script to an archive in Amazon S3.",
        message="an archive in S3 requires python and a file of the archive as the command, and launcher mpi, perNode "
        "or torchrun without arguments; or provide the code by git, configMap or inline",
        find_violations=_check_s3_archive,
    ),
    Rule(
        schema_paths=("spec.source",),
        rationale="muster's start script would replace the file.",
        message="muster's start script has this name; rename your file",
        find_violations=_check_script_name,
    ),
    Rule(
        schema_paths=("spec.launcher.mpi",),
        rationale="On SageMaker, the toolkit of a framework's image starts mpirun.",
        message="set the framework whose toolkit the image has: sagemaker: {framework: {name: PyTorch}}",
        find_violations=_check_container_mpi,
    ),
    Rule(
        schema_paths=("spec.launcher.mpi", "spec.command"),
        rationale="SageMaker's toolkit starts mpirun itself, with Open MPI's options.",
        message="SageMaker uses Open MPI: write the program without mpirun, and implementation Auto or OpenMPI",
        find_violations=_check_mpi_implementation,
    ),
    Rule(
        schema_paths=("spec.sagemaker",),
        rationale="It would be unclear which command runs.",
        message="containerEntrypoint and containerArguments together must equal command; correct the fields, or "
        "remove containerEntrypoint and containerArguments",
        find_violations=_check_entrypoint,
    ),
    Rule(
        schema_paths=("spec.env",),
        rationale="SageMaker rejects the whole job.",
        message=f"SageMaker accepts {MAX_VARIABLES} variables, with names (letters, digits, _) and values of at most "
        f"{MAX_VARIABLE_CHARS} characters",
        find_violations=_check_variables,
    ),
    Rule(
        schema_paths=("spec.env",),
        rationale="SageMaker shows the environment to every user who may describe the job.",
        message="SageMaker can't read a value from Kubernetes: let the ranks fetch the secret from AWS Secrets"
        " Manager, with the job's role",
        find_violations=_check_references,
    ),
    Rule(
        schema_paths=("spec.sagemaker.rawHyperparameters",),
        rationale="muster would send only one of two values with the same name.",
        message="each name may occur only once; remove one",
        find_violations=_check_duplicate_hyperparameters,
    ),
)
