"""Rules about how SageMaker starts the job: command, code, environment and hyperparameters."""

import re
from collections.abc import Iterator

from muster.api.document import Path, quoted
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import sagemaker_blocks
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch, launch, program_file, uses_toolkit
from muster.api.validation.rule import Breach, Rule
from muster.api.validation.rules.mpi.rules import is_runner

MAX_VARIABLES = 100
MAX_VARIABLE_CHARS = 512
"""botocore's service model of 2017-07-24: TrainingEnvironmentMap."""

_VARIABLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def _launches(spec: Spec) -> Iterator[Launch]:
    """Yield how SageMaker starts the job; nothing for other backends."""
    return (launch(spec) for _ in sagemaker_blocks(spec))


def _no_code(spec: Spec) -> Iterator[Breach]:
    for how in _launches(spec):
        if how.start == "Toolkit" and spec.source is None and not how.by_script:
            yield Breach(("command",), f"{how.program} without source")


def _foreign_archive(spec: Spec) -> Iterator[Breach]:
    for how in _launches(spec):
        if spec.source is not None and spec.source.s3 is not None and how.by_script:
            yield Breach(("source", "s3"), "an archive with a command that needs muster's start script")


def _script_name(spec: Spec) -> Iterator[Breach]:
    for how in _launches(spec):
        files = spec.source.inline.files if spec.source is not None and spec.source.inline is not None else {}
        if START_SCRIPT in files and how.by_script:
            yield Breach(("source", "inline", "files", START_SCRIPT), "it")


def _container_mpi(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        has_own = bool(block.container_entrypoint or block.container_arguments)
        if block.start == "Channels" and program_file(spec.command) is not None:
            continue  # muster's start script calls the toolkit in the image
        if spec.launcher.mpi is not None and not has_own and not (uses_toolkit(block) and block.framework is not None):
            yield Breach(("launcher", "mpi"), "it without sagemaker.framework")


def _other_mpi(spec: Spec) -> Iterator[Breach]:
    for _ in sagemaker_blocks(spec):
        mpi = spec.launcher.mpi
        if mpi is None:
            continue
        if mpi.implementation in ("IntelMPI", "MPICH"):
            yield Breach(("launcher", "mpi", "implementation"), mpi.implementation)
        if is_runner(spec.command[0]):
            yield Breach(("command", 0), quoted(spec.command[0]))


def _entrypoint(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        words = (*block.container_entrypoint, *block.container_arguments)
        if words and not uses_toolkit(block) and words != spec.command:
            yield Breach(("sagemaker", "containerEntrypoint"), "other words than spec.command's")


def _variables(spec: Spec) -> Iterator[Breach]:
    if spec.backend != "SageMaker":
        return
    if len(spec.env) > MAX_VARIABLES:
        yield Breach(("env",), f"{len(spec.env)}")
    for index, variable in enumerate(spec.env):
        at: Path = ("env", index)
        if not _VARIABLE.fullmatch(variable.name) or len(variable.name) > MAX_VARIABLE_CHARS:
            yield Breach((*at, "name"), quoted(variable.name))
        if len(variable.value) > MAX_VARIABLE_CHARS:
            yield Breach((*at, "value"), f"{len(variable.value)} characters")


def _references(spec: Spec) -> Iterator[Breach]:
    for _ in sagemaker_blocks(spec):
        for index, variable in enumerate(spec.env):
            if variable.value_from is not None:
                yield Breach(("env", index, "valueFrom"), "one")


def _twice_given(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        for name in block.raw_hyperparameters:
            if name in spec.hyperparameters:
                yield Breach(("sagemaker", "rawHyperparameters", name), "it in spec.hyperparameters too")


START_RULES = (
    Rule(
        places=("spec.command",),
        why="SageMaker's toolkit starts a file of the source archive.",
        sentence="name the code in spec.source; for a program in the image use its absolute path:"
        " python, /app/train.py",
        breaches=_no_code,
    ),
    Rule(
        places=("spec.source",),
        why="muster does not change an archive in Amazon S3, and its start script would be missing.",
        sentence="with such an archive the command has to be python and a file of it, the launcher mpi, perNode or "
        "torchrun without arguments; or provide the code by git, configMap or inline",
        breaches=_foreign_archive,
    ),
    Rule(
        places=("spec.source",),
        why="muster's own file would replace it.",
        sentence="muster needs this name; rename the file",
        breaches=_script_name,
    ),
    Rule(
        places=("spec.launcher.mpi",),
        why="On SageMaker the toolkit of a framework's image starts mpirun.",
        sentence="name the framework whose toolkit the image has: sagemaker: {framework: {name: PyTorch}}",
        breaches=_container_mpi,
    ),
    Rule(
        places=("spec.launcher.mpi", "spec.command"),
        why="SageMaker's toolkit starts mpirun itself, with Open MPI's options.",
        sentence="SageMaker uses Open MPI: write the program without mpirun, and implementation Auto or OpenMPI",
        breaches=_other_mpi,
    ),
    Rule(
        places=("spec.sagemaker",),
        why="It would be unclear which command runs.",
        sentence="containerEntrypoint and containerArguments together must equal command; change one of them, or "
        "remove both",
        breaches=_entrypoint,
    ),
    Rule(
        places=("spec.env",),
        why="SageMaker refuses the whole job.",
        sentence=f"SageMaker takes {MAX_VARIABLES} variables, names (letters, digits, _) and values of at most "
        f"{MAX_VARIABLE_CHARS} characters",
        breaches=_variables,
    ),
    Rule(
        places=("spec.env",),
        why="SageMaker shows the environment to every user who may describe the job.",
        sentence="SageMaker can't read a value from Kubernetes: let the ranks fetch the secret from AWS Secrets"
        " Manager, with the job's role",
        breaches=_references,
    ),
    Rule(
        places=("spec.sagemaker.rawHyperparameters",),
        why="One of the two would be ignored.",
        sentence="each name may occur only once; remove one",
        breaches=_twice_given,
    ),
)
