"""Rules about the instances and versions on which SageMaker supports a distribution, as in the SageMaker SDK.

The source is sagemaker 2.257.7: fw_utils.py (`validate_distribution` and its callees) and estimator.py
(`_distribution_configuration`, `_validate_mwms_config`).
"""

from collections.abc import Iterator

from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import list_sagemaker_blocks
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.launch import decide_launch, find_torchrun_problem, get_rank_instance_type
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.strategies import (
    DISTRIBUTION_PATH,
    SCHEMA_PATHS,
    get_training_framework,
    is_enabled,
    list_distributions,
    list_strategies,
)
from muster.api.spec.sagemaker.support import (
    DATA_PARALLEL_VERSIONS,
    FIRST_MIRRORED_TENSORFLOW,
    IMAGE_WITHOUT_PARALLEL_LIBRARIES,
    LAST_TENSORFLOW_WITHOUT_SCRIPTS,
    P5_INSTANCE_TYPE,
    TORCH_DISTRIBUTED_ON_GPU,
    TORCH_DISTRIBUTED_ON_TRAINIUM,
    is_trainium,
    parse_version,
)
from muster.api.validation.rule import Rule, Violation


def _check_data_parallel_versions(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        estimator, framework, version = get_training_framework(block)
        strategies = ("dataParallel",) if estimator == "HuggingFace" else ("dataParallel", "pytorchDdp")
        for strategy in strategies:
            if (
                is_enabled(distribution, strategy)
                and spec.image is None
                and version not in DATA_PARALLEL_VERSIONS.get(framework, ())
            ):
                yield Violation((*DISTRIBUTION_PATH, strategy), f"{framework} {version}")


def _check_torch_distributed(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        if not is_enabled(distribution, "torchDistributed") or get_training_framework(block)[1] != "PyTorch":
            continue
        problem = find_torchrun_problem(spec, block)
        if problem is not None:
            yield Violation((*DISTRIBUTION_PATH, "torchDistributed"), problem)


def _check_torch_without_python(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        launch = decide_launch(spec)
        framework = get_training_framework(block)[1]
        if (
            is_enabled(distribution, "torchDistributed")
            and framework == "PyTorch"
            and not launch.program.endswith(".py")
        ):
            yield Violation(
                (*DISTRIBUTION_PATH, "torchDistributed"),
                f"torchDistributed with {launch.program or 'no program for the toolkit'}",
            )


def _check_parallel_on_p5(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        types = [block.instance_type or "", *(group.instance_type for group in block.instance_groups)]
        for library in _list_parallel_libraries(block, distribution):
            if any(P5_INSTANCE_TYPE in name for name in types):
                finding = f"{library} on {P5_INSTANCE_TYPE} without torchDistributed"
                yield Violation((*DISTRIBUTION_PATH, library), finding)


def _check_parallel_image(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        for library in _list_parallel_libraries(block, distribution):
            if spec.image is not None and IMAGE_WITHOUT_PARALLEL_LIBRARIES in spec.image:
                yield Violation(
                    (*DISTRIBUTION_PATH, library),
                    f"{library} with the image {quote(spec.image)} without torchDistributed",
                )


def _list_parallel_libraries(block: SageMaker, distribution: Distribution) -> list[str]:
    """Return SageMaker's parallel libraries in the distribution, unless torchrun starts them."""
    if is_enabled(distribution, "torchDistributed"):
        return []
    names = ["dataParallel", "modelParallel"]
    names += ["pytorchDdp"] if block.framework is not None and block.framework.name == "PyTorch" else []
    return [name for name in names if name in list_strategies(distribution)]


def _check_trainium(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        configured = [
            *list_strategies(distribution),
            *(["instanceGroup"] if distribution.instance_group is not None else []),
        ]
        instance_type = get_rank_instance_type(block)
        if is_trainium(instance_type) and configured != ["torchDistributed"]:
            yield Violation(DISTRIBUTION_PATH, f"{' and '.join(configured) or 'nothing'} on {instance_type}")


def _check_trainium_by_launcher(spec: Spec) -> Iterator[Violation]:
    block = spec.sagemaker
    if block is None or block.distribution is not None or spec.backend != "SageMaker":
        return
    if spec.launcher.mpi is not None and is_trainium(get_rank_instance_type(block)):
        yield Violation(("launcher", "mpi"), f"mpi on {get_rank_instance_type(block)}")


def _check_mirrored_strategy(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        if not is_enabled(distribution, "multiWorkerMirrored"):
            continue
        path = (*DISTRIBUTION_PATH, "multiWorkerMirrored")
        estimator, _, version = get_training_framework(block)
        if estimator != "TensorFlow" or version is None or parse_version(version) < FIRST_MIRRORED_TENSORFLOW:
            yield Violation(path, f"multiWorkerMirrored with {estimator} {version or 'of no version'}")
        conflicts = {"dataParallel", "modelParallel", "parameterServer"} & set(list_strategies(distribution))
        if conflicts:
            yield Violation(path, f"multiWorkerMirrored with {' and '.join(sorted(conflicts))}")


def _check_versions_without_scripts(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        framework = block.framework
        if spec.image is not None or framework is None or framework.name != "TensorFlow" or framework.version is None:
            continue
        if parse_version(framework.version) <= LAST_TENSORFLOW_WITHOUT_SCRIPTS:
            yield Violation(("sagemaker", "framework", "version"), framework.version)


SUPPORT_RULES = (
    Rule(
        schema_paths=("spec.sagemaker.framework.version",),
        rationale="The SageMaker SDK rejects these versions, whose images can't run scripts.",
        message="AWS' TensorFlow images run scripts since version 1.11; use a later version, or set spec.image",
        find_violations=_check_versions_without_scripts,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="Later images don't have the library.",
        message="SageMaker's data parallel library is supported up to"
        f" PyTorch {DATA_PARALLEL_VERSIONS['PyTorch'][-1]} and TensorFlow"
        f" {DATA_PARALLEL_VERSIONS['TensorFlow'][-1]}; use torchDistributed",
        find_violations=_check_data_parallel_versions,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The SageMaker SDK rejects torchDistributed in other cases.",
        message="torchDistributed is for GPUs, with PyTorch"
        f" {TORCH_DISTRIBUTED_ON_GPU[0]} to {TORCH_DISTRIBUTED_ON_GPU[-1]}, and for Trainium, with"
        f" {TORCH_DISTRIBUTED_ON_TRAINIUM[0]} to {TORCH_DISTRIBUTED_ON_TRAINIUM[-1]}; without a distribution muster's"
        " start script runs torchrun on any instance",
        find_violations=_check_torch_distributed,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The toolkit's torchrun starts Python programs only.",
        message="with torchDistributed the command must be python and a file, such as [python, train.py]",
        find_violations=_check_torch_without_python,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The libraries' own launcher doesn't work on p5.",
        message="smdistributed on p5 needs torchDistributed too",
        find_violations=_check_parallel_on_p5,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The libraries don't support the image's CUDA version.",
        message="that image has none of SageMaker's parallel libraries; use another image, or torchDistributed",
        find_violations=_check_parallel_image,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="Only torchDistributed works on Trainium.",
        message="on Trainium only torchDistributed is supported",
        find_violations=_check_trainium,
    ),
    Rule(
        schema_paths=("spec.launcher.mpi",),
        rationale="MPI does not work on Trainium.",
        message="mpi is not supported on Trainium; use torchrun",
        find_violations=_check_trainium_by_launcher,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The SageMaker SDK rejects multiWorkerMirrored in other cases.",
        message="multiWorkerMirrored is for TensorFlow from 2.9 on, without smdistributed and parameterServer",
        find_violations=_check_mirrored_strategy,
    ),
)
