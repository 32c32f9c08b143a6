"""Rules about combinations of distributions, and distributions that the SageMaker SDK ignores.

Source: sagemaker 2.257.7, fw_utils.py (`validate_distribution`, `validate_smdistributed`) and the estimators in
pytorch/, tensorflow/ and huggingface/.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.launch import rank_instance_groups
from muster.api.spec.sagemaker.strategies import (
    DISTRIBUTION,
    FIELDS,
    SCHEMA_PATHS,
    distributions,
    effective_strategies,
    is_enabled,
    strategy_names,
    training_framework,
)
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.sagemaker.model_parallel import find_parameter_violations


def _check_empty_distribution(spec: Spec) -> Iterator[Violation]:
    for _, distribution in distributions(spec):
        if not strategy_names(distribution):
            yield Violation(DISTRIBUTION, "none of them")


def _check_without_framework(spec: Spec) -> Iterator[Violation]:
    for block, _ in distributions(spec):
        if block.framework is None:
            yield Violation(DISTRIBUTION, "one without sagemaker.framework")


def _check_ignored(spec: Spec) -> Iterator[Violation]:
    for block, distribution in distributions(spec):
        estimator, trains, _ = training_framework(block)
        effective = _effective_strategies(estimator, distribution)
        for strategy in strategy_names(distribution):
            if strategy not in effective:
                yield Violation(
                    (*DISTRIBUTION, strategy),
                    f"it beside {' and '.join(sorted(effective))}" if effective else f"it with {trains}",
                )


def _effective_strategies(estimator: str, distribution: Distribution) -> AbstractSet[str]:
    """Return the strategies that the SDK's estimator passes to the toolkit."""
    configured = set(strategy_names(distribution))
    return effective_strategies(
        estimator, configured, {strategy for strategy in configured if is_enabled(distribution, strategy)}
    )


def _check_two_libraries(spec: Spec) -> Iterator[Violation]:
    for _, distribution in distributions(spec):
        chosen = [
            strategy
            for strategy in ("pytorchDdp", "dataParallel", "modelParallel")
            if strategy in strategy_names(distribution)
        ]
        if len(chosen) > 1:
            yield Violation(DISTRIBUTION, " and ".join(chosen))


def _check_lost_settings(spec: Spec) -> Iterator[Violation]:
    for block, distribution in distributions(spec):
        data, ddp, model = distribution.data_parallel, distribution.pytorch_ddp, distribution.model_parallel
        if data is not None and not data.enabled and data.custom_mpi_options:
            yield Violation((*DISTRIBUTION, "dataParallel", "customMpiOptions"), "some with enabled: false")
        never = block.framework is not None and block.framework.name == "HuggingFace"
        if ddp is not None and ddp.custom_mpi_options and (never or not ddp.enabled):
            yield Violation(
                (*DISTRIBUTION, "pytorchDdp", "customMpiOptions"), "some for HuggingFace" if never else "some when off"
            )
        if model is not None and not model.enabled and model.parameters:
            yield Violation((*DISTRIBUTION, "modelParallel", "parameters"), "some with enabled: false")


def _check_group(spec: Spec) -> Iterator[Violation]:
    for block, distribution in distributions(spec):
        names = [group.name for group in block.instance_groups]
        chosen = distribution.instance_group
        if chosen is not None and chosen not in names:
            yield Violation(
                (*DISTRIBUTION, "instanceGroup"), f"{quote(chosen)}, with {', '.join(names) or 'no groups'}"
            )
        elif chosen is None and len(names) > 1:
            yield Violation(DISTRIBUTION, f"no instanceGroup with {', '.join(names)}")


def _check_group_without_ranks(spec: Spec) -> Iterator[Violation]:
    for block, distribution in distributions(spec):
        estimator = training_framework(block)[0]
        by_mpi = any(is_enabled(distribution, strategy) for strategy in ("mpi", "dataParallel"))
        by_mpi = by_mpi or (estimator == "PyTorch" and is_enabled(distribution, "pytorchDdp"))
        torchrun_only = {"torchDistributed"} if estimator == "PyTorch" else {"torchDistributed", "pytorchDdp"}
        effective = _effective_strategies(estimator, distribution)
        by_torch = (
            len(effective) == 1
            and effective <= torchrun_only
            and all(is_enabled(distribution, strategy) for strategy in effective)
        )
        if rank_instance_groups(block) and not by_mpi and not by_torch:
            yield Violation(
                DISTRIBUTION, f"instance groups with {' and '.join(strategy_names(distribution)) or 'nothing'}"
            )


def _check_parameters(spec: Spec) -> Iterator[Violation]:
    for _, distribution in distributions(spec):
        if distribution.model_parallel is not None and distribution.model_parallel.enabled:
            yield from find_parameter_violations(
                (*DISTRIBUTION, "modelParallel", "parameters"), distribution.model_parallel.parameters
            )


def _check_processes(spec: Spec) -> Iterator[Violation]:
    for _, distribution in distributions(spec):
        processes = distribution.mpi.processes_per_host if distribution.mpi is not None else None
        procs = spec.procs_per_node
        if processes is not None and not isinstance(procs, str) and processes != procs:
            yield Violation((*DISTRIBUTION, "mpi", "processesPerHost"), f"{processes} with procsPerNode: {procs}")


def _check_launcher_arguments(spec: Spec) -> Iterator[Violation]:
    for _ in distributions(spec):
        for name, launcher in spec.launcher.fields_set().items():
            if launcher.arguments():
                yield Violation(("launcher", name, "args"), "some beside sagemaker.distribution")


DISTRIBUTION_RULES = (
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="Nothing would be distributed.",
        message=f"one of {', '.join(FIELDS)} is needed, or no distribution",
        find_violations=_check_empty_distribution,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="Only the SDK's estimators of frameworks have distributions, and only their toolkits read them.",
        message="a framework's toolkit starts the ranks: set sagemaker.framework too, {name: PyTorch} for an image"
        " of your own that has it",
        find_violations=_check_without_framework,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="The SageMaker SDK drops it silently.",
        message="SageMaker's toolkit does not get this option; remove it",
        find_violations=_check_ignored,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="The SDK allows one strategy of smdistributed, and converts pytorchddp to one.",
        message="at most one of pytorchDdp, dataParallel and modelParallel may be set",
        find_violations=_check_two_libraries,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="The SageMaker SDK drops them silently.",
        message="they would have no effect; remove them",
        find_violations=_check_lost_settings,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="The SDK runs the ranks on one group.",
        message="name one of sagemaker.instanceGroups",
        find_violations=_check_group,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="The SDK rejects a group for ranks if no launcher starts them.",
        message="with instance groups mpi, dataParallel, or torchDistributed alone has to start the ranks",
        find_violations=_check_group_without_ranks,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="The library would fail with it, after the instances have started.",
        message="the library does not accept this value",
        find_violations=_check_parameters,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        why="One of the two would be ignored.",
        message="use the same number, or set only one of them",
        find_violations=_check_processes,
    ),
    Rule(
        schema_paths=("spec.launcher",),
        why="distribution replaces launcher, and the launcher's arguments would be ignored.",
        message="with a distribution they would have no effect: write options for mpirun into its customMpiOptions",
        find_violations=_check_launcher_arguments,
    ),
)
