"""Rules about combinations of distributions, and distributions that the SageMaker SDK ignores.

The source is sagemaker 2.257.7: fw_utils.py (`validate_distribution`, `validate_smdistributed`) and the estimators in
pytorch/, tensorflow/ and huggingface/.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.launch import list_rank_instance_groups
from muster.api.spec.sagemaker.strategies import (
    DISTRIBUTION_PATH,
    SCHEMA_PATHS,
    STRATEGY_FIELDS,
    get_training_framework,
    is_enabled,
    list_distributions,
    list_strategies,
    select_effective_strategies,
)
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.sagemaker.model_parallel import find_parameter_violations


def _check_empty_distribution(spec: Spec) -> Iterator[Violation]:
    for _, distribution in list_distributions(spec):
        if not list_strategies(distribution):
            yield Violation(DISTRIBUTION_PATH, "none")


def _check_without_framework(spec: Spec) -> Iterator[Violation]:
    for block, _ in list_distributions(spec):
        if block.framework is None:
            yield Violation(DISTRIBUTION_PATH, "a distribution without sagemaker.framework")


def _check_ignored_strategies(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        estimator, framework, _ = get_training_framework(block)
        effective_names = _list_effective_strategies(estimator, distribution)
        for strategy in list_strategies(distribution):
            if strategy not in effective_names:
                yield Violation(
                    (*DISTRIBUTION_PATH, strategy),
                    f"{strategy} with {' and '.join(sorted(effective_names)) or framework}",
                )


def _list_effective_strategies(estimator: str, distribution: Distribution) -> AbstractSet[str]:
    """Return the strategies that the SDK's estimator passes to the toolkit."""
    configured = set(list_strategies(distribution))
    return select_effective_strategies(
        estimator, configured, {strategy for strategy in configured if is_enabled(distribution, strategy)}
    )


def _check_two_libraries(spec: Spec) -> Iterator[Violation]:
    for _, distribution in list_distributions(spec):
        chosen = [
            strategy
            for strategy in ("pytorchDdp", "dataParallel", "modelParallel")
            if strategy in list_strategies(distribution)
        ]
        if len(chosen) > 1:
            yield Violation(DISTRIBUTION_PATH, " and ".join(chosen))


def _check_unused_settings(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        data, ddp, model = distribution.data_parallel, distribution.pytorch_ddp, distribution.model_parallel
        if data is not None and not data.enabled and data.custom_mpi_options:
            yield Violation((*DISTRIBUTION_PATH, "dataParallel", "customMpiOptions"), "options with enabled: false")
        is_hugging_face = block.framework is not None and block.framework.name == "HuggingFace"
        if ddp is not None and ddp.custom_mpi_options and (is_hugging_face or not ddp.enabled):
            yield Violation(
                (*DISTRIBUTION_PATH, "pytorchDdp", "customMpiOptions"),
                "options for HuggingFace" if is_hugging_face else "options with enabled: false",
            )
        if model is not None and not model.enabled and model.parameters:
            yield Violation((*DISTRIBUTION_PATH, "modelParallel", "parameters"), "parameters with enabled: false")


def _check_group(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        names = [group.name for group in block.instance_groups]
        chosen = distribution.instance_group
        if chosen is not None and chosen not in names:
            yield Violation(
                (*DISTRIBUTION_PATH, "instanceGroup"), f"{quote(chosen)}, with {', '.join(names) or 'no groups'}"
            )
        elif chosen is None and len(names) > 1:
            yield Violation(DISTRIBUTION_PATH, f"no instanceGroup with {', '.join(names)}")


def _check_group_without_ranks(spec: Spec) -> Iterator[Violation]:
    for block, distribution in list_distributions(spec):
        estimator = get_training_framework(block)[0]
        by_mpi = any(is_enabled(distribution, strategy) for strategy in ("mpi", "dataParallel"))
        by_mpi = by_mpi or (estimator == "PyTorch" and is_enabled(distribution, "pytorchDdp"))
        torchrun_only = {"torchDistributed"} if estimator == "PyTorch" else {"torchDistributed", "pytorchDdp"}
        effective_names = _list_effective_strategies(estimator, distribution)
        by_torch = (
            len(effective_names) == 1
            and effective_names <= torchrun_only
            and all(is_enabled(distribution, strategy) for strategy in effective_names)
        )
        if list_rank_instance_groups(block) and not by_mpi and not by_torch:
            yield Violation(
                DISTRIBUTION_PATH, f"instance groups with {' and '.join(list_strategies(distribution)) or 'nothing'}"
            )


def _check_parameters(spec: Spec) -> Iterator[Violation]:
    for _, distribution in list_distributions(spec):
        if distribution.model_parallel is not None and distribution.model_parallel.enabled:
            yield from find_parameter_violations(
                (*DISTRIBUTION_PATH, "modelParallel", "parameters"), distribution.model_parallel.parameters
            )


def _check_processes(spec: Spec) -> Iterator[Violation]:
    for _, distribution in list_distributions(spec):
        processes = distribution.mpi.processes_per_host if distribution.mpi is not None else None
        procs = spec.procs_per_node
        if processes is not None and not isinstance(procs, str) and processes != procs:
            yield Violation((*DISTRIBUTION_PATH, "mpi", "processesPerHost"), f"{processes} with procsPerNode: {procs}")


def _check_launcher_arguments(spec: Spec) -> Iterator[Violation]:
    for _ in list_distributions(spec):
        for name, launcher in spec.launcher.list_configured_launchers().items():
            if launcher.list_arguments():
                yield Violation(("launcher", name, "args"), "arguments together with sagemaker.distribution")


DISTRIBUTION_RULES = (
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="An empty distribution starts no ranks.",
        message=f"one of {', '.join(STRATEGY_FIELDS)} is needed, or no distribution",
        find_violations=_check_empty_distribution,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="Only the toolkits of framework images read a distribution.",
        message="a framework's toolkit starts the ranks: set sagemaker.framework, for example to {name: PyTorch}, "
        "also for your own image with the toolkit",
        find_violations=_check_without_framework,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The SageMaker SDK silently ignores this strategy.",
        message="SageMaker's toolkit does not get this strategy; remove it",
        find_violations=_check_ignored_strategies,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The SDK allows one strategy of smdistributed, and converts pytorchddp to one.",
        message="at most one of pytorchDdp, dataParallel and modelParallel may be set",
        find_violations=_check_two_libraries,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The SageMaker SDK silently ignores these settings.",
        message="these settings would have no effect; remove them",
        find_violations=_check_unused_settings,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The SDK runs the ranks on one group.",
        message="set instanceGroup to the name of one of sagemaker.instanceGroups",
        find_violations=_check_group,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The SDK rejects instanceGroup if no launcher starts the ranks.",
        message="instance groups need mpi, dataParallel, or torchDistributed without other strategies",
        find_violations=_check_group_without_ranks,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The library would reject the value after the instances have started.",
        message="the library does not accept this value",
        find_violations=_check_parameters,
    ),
    Rule(
        schema_paths=SCHEMA_PATHS,
        rationale="The toolkit would ignore either processesPerHost or procsPerNode.",
        message="use the same number for processesPerHost and procsPerNode, or remove one of the two fields",
        find_violations=_check_processes,
    ),
    Rule(
        schema_paths=("spec.launcher",),
        rationale="distribution replaces launcher, so the launcher's arguments would have no effect.",
        message="with a distribution, arguments of the launcher have no effect: write options for mpirun into the "
        "distribution's customMpiOptions",
        find_violations=_check_launcher_arguments,
    ),
)
