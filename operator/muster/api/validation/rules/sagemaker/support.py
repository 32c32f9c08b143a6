"""Rules about which distributions SageMaker supports on which instances and versions, as in the SageMaker SDK.

Source: sagemaker 2.257.7, fw_utils.py (`validate_distribution` and what it calls) and estimator.py
(`_distribution_configuration`, `_validate_mwms_config`).
"""

from collections.abc import Iterator

from muster.api.document import quoted
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import sagemaker_blocks
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.launch import launch, rank_instance_type, torch_objection
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.support import (
    DATA_PARALLEL_VERSIONS,
    FIRST_MIRRORED_TENSORFLOW,
    LAST_TENSORFLOW_WITHOUT_SCRIPTS,
    NO_PARALLEL_IMAGE,
    P5,
    TORCH_DISTRIBUTED_ON_GPU,
    TORCH_DISTRIBUTED_ON_TRAINIUM,
    is_trainium,
    numbers,
)
from muster.api.spec.sagemaker.ways import DISTRIBUTION, PLACES, distributions, is_on, trained_by, ways
from muster.api.validation.rule import Breach, Rule


def _data_parallel_versions(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        estimator, trains, version = trained_by(block)
        ways = ("dataParallel",) if estimator == "HuggingFace" else ("dataParallel", "pytorchDdp")
        for way in ways:
            if (
                is_on(distribution, way)
                and spec.image is None
                and version not in DATA_PARALLEL_VERSIONS.get(trains, ())
            ):
                yield Breach((*DISTRIBUTION, way), f"{trains} {version}")


def _torch_distributed(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        if not is_on(distribution, "torchDistributed") or trained_by(block)[1] != "PyTorch":
            continue
        objection = torch_objection(spec, block)
        if objection is not None:
            yield Breach((*DISTRIBUTION, "torchDistributed"), objection)


def _torch_without_python(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        how = launch(spec)
        trains = trained_by(block)[1]
        if is_on(distribution, "torchDistributed") and trains == "PyTorch" and not how.program.endswith(".py"):
            yield Breach((*DISTRIBUTION, "torchDistributed"), f"it with {how.program or 'no program for the toolkit'}")


def _parallel_on_p5(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        types = [block.instance_type or "", *(group.instance_type for group in block.instance_groups)]
        for way in _parallel_ways(block, distribution):
            if any(P5 in name for name in types):
                yield Breach((*DISTRIBUTION, way), f"it on {P5} without torchDistributed")


def _parallel_image(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        for way in _parallel_ways(block, distribution):
            if spec.image is not None and NO_PARALLEL_IMAGE in spec.image:
                yield Breach((*DISTRIBUTION, way), f"it with the image {quoted(spec.image)} without torchDistributed")


def _parallel_ways(block: SageMaker, distribution: Distribution) -> list[str]:
    """SageMaker's own libraries, if torchrun doesn't start them."""
    if is_on(distribution, "torchDistributed"):
        return []
    names = ["dataParallel", "modelParallel"]
    names += ["pytorchDdp"] if block.framework is not None and block.framework.name == "PyTorch" else []
    return [name for name in names if name in ways(distribution)]


def _trainium(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        said = [*ways(distribution), *(["instanceGroup"] if distribution.instance_group is not None else [])]
        if is_trainium(rank_instance_type(block)) and said != ["torchDistributed"]:
            yield Breach(DISTRIBUTION, f"{' and '.join(said) or 'nothing'} on {rank_instance_type(block)}")


def _trainium_by_launcher(spec: Spec) -> Iterator[Breach]:
    block = spec.sagemaker
    if block is None or block.distribution is not None or spec.backend != "SageMaker":
        return
    if spec.launcher.mpi is not None and is_trainium(rank_instance_type(block)):
        yield Breach(("launcher", "mpi"), f"mpi on {rank_instance_type(block)}")


def _mirrored(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        if not is_on(distribution, "multiWorkerMirrored"):
            continue
        at = (*DISTRIBUTION, "multiWorkerMirrored")
        estimator, _, version = trained_by(block)
        if estimator != "TensorFlow" or version is None or numbers(version) < FIRST_MIRRORED_TENSORFLOW:
            yield Breach(at, f"it with {estimator} {version or 'of no version'}")
        beside = {"dataParallel", "modelParallel", "parameterServer"} & set(ways(distribution))
        if beside:
            yield Breach(at, f"it beside {' and '.join(sorted(beside))}")


def _without_scripts(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        framework = block.framework
        if spec.image is not None or framework is None or framework.name != "TensorFlow" or framework.version is None:
            continue
        if numbers(framework.version) <= LAST_TENSORFLOW_WITHOUT_SCRIPTS:
            yield Breach(("sagemaker", "framework", "version"), framework.version)


SUPPORT_RULES = (
    Rule(
        places=("spec.sagemaker.framework.version",),
        why="The SageMaker SDK rejects it: those images can't run scripts.",
        sentence="AWS' TensorFlow images run scripts from 1.11 on; use a later version, or set spec.image",
        breaches=_without_scripts,
    ),
    Rule(
        places=PLACES,
        why="Later images don't have the library.",
        sentence="SageMaker's data parallel library is supported up to"
        f" PyTorch {DATA_PARALLEL_VERSIONS['PyTorch'][-1]} and TensorFlow"
        f" {DATA_PARALLEL_VERSIONS['TensorFlow'][-1]}; use torchDistributed",
        breaches=_data_parallel_versions,
    ),
    Rule(
        places=PLACES,
        why="The SageMaker SDK refuses it.",
        sentence="torchDistributed is for GPUs, with PyTorch"
        f" {TORCH_DISTRIBUTED_ON_GPU[0]} to {TORCH_DISTRIBUTED_ON_GPU[-1]}, and for Trainium, with"
        f" {TORCH_DISTRIBUTED_ON_TRAINIUM[0]} to {TORCH_DISTRIBUTED_ON_TRAINIUM[-1]}; without a distribution muster's"
        " start script runs torchrun on any instance",
        breaches=_torch_distributed,
    ),
    Rule(
        places=PLACES,
        why="The toolkit's torchrun starts Python programs only.",
        sentence="with torchDistributed the command is python and a file, such as [python, train.py]",
        breaches=_torch_without_python,
    ),
    Rule(
        places=PLACES,
        why="The libraries' own launcher doesn't work there.",
        sentence="smdistributed on p5 needs torchDistributed beside it",
        breaches=_parallel_on_p5,
    ),
    Rule(
        places=PLACES,
        why="The libraries don't support the image's CUDA version.",
        sentence="that image has none of SageMaker's parallel libraries; use another image, or torchDistributed",
        breaches=_parallel_image,
    ),
    Rule(
        places=PLACES,
        why="Nothing else works on Trainium.",
        sentence="on Trainium only torchDistributed is supported",
        breaches=_trainium,
    ),
    Rule(
        places=("spec.launcher.mpi",),
        why="Nothing else works on Trainium.",
        sentence="mpi is not supported on Trainium; take torchrun",
        breaches=_trainium_by_launcher,
    ),
    Rule(
        places=PLACES,
        why="The SageMaker SDK refuses it.",
        sentence="multiWorkerMirrored is for TensorFlow from 2.9 on, without smdistributed and parameterServer",
        breaches=_mirrored,
    ),
)
