"""Rules about which distributions can be combined, and which of them the SageMaker SDK would ignore.

Source: sagemaker 2.257.7, fw_utils.py (`validate_distribution`, `validate_smdistributed`) and the estimators in
pytorch/, tensorflow/ and huggingface/.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from muster.api.document import quoted
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.launch import rank_groups
from muster.api.spec.sagemaker.ways import (
    DISTRIBUTION,
    FIELDS,
    PLACES,
    distributions,
    effective_ways,
    is_on,
    trained_by,
    ways,
)
from muster.api.validation.rule import Breach, Rule
from muster.api.validation.rules.sagemaker.model_parallel import parameter_breaches


def _nothing(spec: Spec) -> Iterator[Breach]:
    for _, distribution in distributions(spec):
        if not ways(distribution):
            yield Breach(DISTRIBUTION, "none of them")


def _without_framework(spec: Spec) -> Iterator[Breach]:
    for block, _ in distributions(spec):
        if block.framework is None:
            yield Breach(DISTRIBUTION, "one without sagemaker.framework")


def _ignored(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        estimator, trains, _ = trained_by(block)
        effective = _effective_ways(estimator, distribution)
        for way in ways(distribution):
            if way not in effective:
                yield Breach(
                    (*DISTRIBUTION, way),
                    f"it beside {' and '.join(sorted(effective))}" if effective else f"it with {trains}",
                )


def _effective_ways(estimator: str, distribution: Distribution) -> AbstractSet[str]:
    """The parts of the distribution that the SDK's estimator passes to the toolkit."""
    said = set(ways(distribution))
    return effective_ways(estimator, said, {way for way in said if is_on(distribution, way)})


def _two_libraries(spec: Spec) -> Iterator[Breach]:
    for _, distribution in distributions(spec):
        chosen = [way for way in ("pytorchDdp", "dataParallel", "modelParallel") if way in ways(distribution)]
        if len(chosen) > 1:
            yield Breach(DISTRIBUTION, " and ".join(chosen))


def _lost_settings(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        data, ddp, model = distribution.data_parallel, distribution.pytorch_ddp, distribution.model_parallel
        if data is not None and not data.enabled and data.custom_mpi_options:
            yield Breach((*DISTRIBUTION, "dataParallel", "customMpiOptions"), "some with enabled: false")
        never = block.framework is not None and block.framework.name == "HuggingFace"
        if ddp is not None and ddp.custom_mpi_options and (never or not ddp.enabled):
            yield Breach(
                (*DISTRIBUTION, "pytorchDdp", "customMpiOptions"), "some for HuggingFace" if never else "some when off"
            )
        if model is not None and not model.enabled and model.parameters:
            yield Breach((*DISTRIBUTION, "modelParallel", "parameters"), "some with enabled: false")


def _group(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        names = [group.name for group in block.instance_groups]
        chosen = distribution.instance_group
        if chosen is not None and chosen not in names:
            yield Breach((*DISTRIBUTION, "instanceGroup"), f"{quoted(chosen)}, with {', '.join(names) or 'no groups'}")
        elif chosen is None and len(names) > 1:
            yield Breach(DISTRIBUTION, f"no instanceGroup with {', '.join(names)}")


def _group_without_ranks(spec: Spec) -> Iterator[Breach]:
    for block, distribution in distributions(spec):
        estimator = trained_by(block)[0]
        by_mpi = any(is_on(distribution, way) for way in ("mpi", "dataParallel"))
        by_mpi = by_mpi or (estimator == "PyTorch" and is_on(distribution, "pytorchDdp"))
        alone = {"torchDistributed"} if estimator == "PyTorch" else {"torchDistributed", "pytorchDdp"}
        effective = _effective_ways(estimator, distribution)
        by_torch = len(effective) == 1 and effective <= alone and all(is_on(distribution, way) for way in effective)
        if rank_groups(block) and not by_mpi and not by_torch:
            yield Breach(DISTRIBUTION, f"instance groups with {' and '.join(ways(distribution)) or 'nothing'}")


def _parameters(spec: Spec) -> Iterator[Breach]:
    for _, distribution in distributions(spec):
        if distribution.model_parallel is not None and distribution.model_parallel.enabled:
            yield from parameter_breaches(
                (*DISTRIBUTION, "modelParallel", "parameters"), distribution.model_parallel.parameters
            )


def _processes(spec: Spec) -> Iterator[Breach]:
    for _, distribution in distributions(spec):
        said = distribution.mpi.processes_per_host if distribution.mpi is not None else None
        procs = spec.procs_per_node
        if said is not None and not isinstance(procs, str) and said != procs:
            yield Breach((*DISTRIBUTION, "mpi", "processesPerHost"), f"{said} with procsPerNode: {procs}")


def _launcher_arguments(spec: Spec) -> Iterator[Breach]:
    for _ in distributions(spec):
        for name, launcher in spec.launcher.fields_set().items():
            if launcher.arguments():
                yield Breach(("launcher", name, "args"), "some beside sagemaker.distribution")


DISTRIBUTION_RULES = (
    Rule(
        places=PLACES,
        why="Nothing would be distributed.",
        sentence=f"one of {', '.join(FIELDS)} is needed, or no distribution",
        breaches=_nothing,
    ),
    Rule(
        places=PLACES,
        why="Only the SDK's estimators of frameworks have distributions, and only their toolkits read them.",
        sentence="a framework's toolkit starts the ranks: set sagemaker.framework too, {name: PyTorch} for an image"
        " of your own that has it",
        breaches=_without_framework,
    ),
    Rule(
        places=PLACES,
        why="The SageMaker SDK drops it silently.",
        sentence="SageMaker's toolkit does not get this option; remove it",
        breaches=_ignored,
    ),
    Rule(
        places=PLACES,
        why="The SDK allows one strategy of smdistributed, and converts pytorchddp to one.",
        sentence="at most one of pytorchDdp, dataParallel and modelParallel may be set",
        breaches=_two_libraries,
    ),
    Rule(
        places=PLACES,
        why="The SageMaker SDK drops them silently.",
        sentence="they would have no effect; remove them",
        breaches=_lost_settings,
    ),
    Rule(
        places=PLACES,
        why="The SDK runs the ranks on one group.",
        sentence="name one of sagemaker.instanceGroups",
        breaches=_group,
    ),
    Rule(
        places=PLACES,
        why="The SDK rejects a group for ranks if no launcher starts them.",
        sentence="with instance groups mpi, dataParallel, or torchDistributed alone has to start the ranks",
        breaches=_group_without_ranks,
    ),
    Rule(
        places=PLACES,
        why="The library would fail with it, after the instances have started.",
        sentence="the library does not accept this value",
        breaches=_parameters,
    ),
    Rule(
        places=PLACES,
        why="One of the two would be ignored.",
        sentence="use the same number, or set only one of them",
        breaches=_processes,
    ),
    Rule(
        places=("spec.launcher",),
        why="distribution replaces launcher, and the launcher's arguments would be ignored.",
        sentence="with a distribution they would have no effect: write options for mpirun into its customMpiOptions",
        breaches=_launcher_arguments,
    ),
)
