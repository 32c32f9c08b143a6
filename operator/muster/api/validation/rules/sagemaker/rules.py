"""Rules about the settings that a SageMaker job requires: a role, instances, an image."""

from collections.abc import Iterator

from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import list_sagemaker_blocks
from muster.api.spec.sagemaker.launch import uses_some_instance_groups
from muster.api.validation.rule import Rule, Violation


def _check_missing_block(spec: Spec) -> Iterator[Violation]:
    if spec.backend == "SageMaker" and spec.sagemaker is None:
        yield Violation(("sagemaker",), "no settings with backend: SageMaker")


def _check_role(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        if block.role is None:
            yield Violation(("sagemaker",), "no role")


def _check_instances(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        if (block.instance_type is None) == (not block.instance_groups):
            yield Violation(("sagemaker",), "none" if block.instance_type is None else "both")


def _check_group_sizes(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        total = sum(group.instance_count for group in block.instance_groups)
        if block.instance_groups and total != spec.nodes:
            yield Violation(("nodes",), f"{spec.nodes}, but {total} instances in all groups")


def _check_group_names(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        names = [group.name for group in block.instance_groups]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Violation(("sagemaker", "instanceGroups", index, "name"), f"{quote(name)} twice")


def _check_auto_with_mixed_instance_types(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        is_one_rank = spec.launcher.chosen_launcher.command_starts_ranks or block.distribution is not None
        has_mixed_types = any(
            group.instance_type != block.instance_groups[0].instance_type for group in block.instance_groups
        )
        if spec.procs_per_node == "Auto" and not is_one_rank and has_mixed_types:
            yield Violation(
                ("procsPerNode",),
                f"Auto with instance groups {', '.join(group.name for group in block.instance_groups)}",
            )


def _check_mpi_with_groups(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        if block.start == "Channels":
            continue  # The SDK's ModelTrainer can create such jobs, so muster only warns about them.
        if spec.launcher.mpi is not None and block.distribution is None and len(block.instance_groups) > 1:
            yield Violation(
                ("launcher", "mpi"),
                f"mpi with instance groups {', '.join(group.name for group in block.instance_groups)}",
            )


def _check_reports_with_groups(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        if block.rank_reports == "On" and uses_some_instance_groups(block):
            yield Violation(("sagemaker", "rankReports"), "On, but only one of several instance groups runs ranks")


def _check_spot_and_warm_pool(spec: Spec) -> Iterator[Violation]:
    block = spec.sagemaker
    if block is not None and block.spot is not None and block.keep_alive_seconds is not None:
        yield Violation(("sagemaker",), "keepAliveSeconds with spot")


def _check_short_wait(spec: Spec) -> Iterator[Violation]:
    block = spec.sagemaker
    wait = block.spot.max_wait_seconds if block is not None and block.spot is not None else None
    if block is not None and wait is not None and wait < block.max_run_seconds:
        yield Violation(("sagemaker", "spot", "maxWaitSeconds"), f"{wait} with maxRunSeconds: {block.max_run_seconds}")


def _check_missing_image(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        if spec.image is None and block.framework is None:
            yield Violation(("sagemaker",), "none")


def _check_missing_version(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        if spec.image is None and block.framework is not None and block.framework.version is None:
            yield Violation(("sagemaker", "framework"), f"{block.framework.name} without version")


def _check_hugging_face_versions(spec: Spec) -> Iterator[Violation]:
    framework = spec.sagemaker.framework if spec.sagemaker is not None else None
    if framework is None:
        return
    base_versions = {"pytorchVersion": framework.pytorch_version, "tensorflowVersion": framework.tensorflow_version}
    version_fields = [name for name, version in base_versions.items() if version is not None]
    if framework.name != "HuggingFace" and version_fields:
        yield Violation(("sagemaker", "framework"), f"{' and '.join(version_fields)} with {framework.name}")
    elif framework.name == "HuggingFace" and len(version_fields) != 1 and (spec.image is None or version_fields):
        yield Violation(("sagemaker", "framework"), " and ".join(version_fields) or "none with HuggingFace")


def _check_model_dir(spec: Spec) -> Iterator[Violation]:
    framework = spec.sagemaker.framework if spec.sagemaker is not None else None
    if framework is not None and framework.name != "TensorFlow" and framework.model_dir != "Auto":
        yield Violation(("sagemaker", "framework", "modelDir"), f"modelDir with {framework.name}")


SAGEMAKER_RULES = (
    Rule(
        schema_paths=("spec",),
        rationale="SageMaker requires a role and instances.",
        message="sagemaker: {role: ..., instanceType: ...} is needed",
        find_violations=_check_missing_block,
        cel="self.backend != 'SageMaker' || has(self.sagemaker)",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="The training job runs with this role, and muster has no default for it.",
        message="role is needed: arn:aws:iam::<account>:role/<name>",
        find_violations=_check_role,
        cel="self.backend != 'SageMaker' || !has(self.sagemaker) || has(self.sagemaker.role)",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="SageMaker accepts either an instance type or instance groups.",
        message="exactly one of instanceType and instanceGroups must be set",
        find_violations=_check_instances,
        cel="self.backend != 'SageMaker' || !has(self.sagemaker) || has(self.sagemaker.instanceType) != "
        "(has(self.sagemaker.instanceGroups) && self.sagemaker.instanceGroups.size() > 0)",
    ),
    Rule(
        schema_paths=("spec.nodes",),
        rationale="The status would show a wrong number of nodes.",
        message="nodes must be the number of instances in all groups",
        find_violations=_check_group_sizes,
    ),
    Rule(
        schema_paths=("spec.sagemaker.instanceGroups",),
        rationale="Channels and distributions refer to a group by its name.",
        message="each name may occur only once; rename one",
        find_violations=_check_group_names,
    ),
    Rule(
        schema_paths=("spec.procsPerNode",),
        rationale="Instance types differ in their number of devices, but a launcher needs the same number of ranks on "
        "each node.",
        message="if the groups' instance types differ, set the number of ranks on each instance, or set "
        "sagemaker.distribution.instanceGroup to the group that runs the ranks",
        find_violations=_check_auto_with_mixed_instance_types,
    ),
    Rule(
        schema_paths=("spec.launcher.mpi",),
        rationale="SageMaker's toolkit would start an mpirun in each group, each with its own world.",
        message="name the group that runs the ranks: sagemaker: {distribution: {mpi: {}, instanceGroup: ...}}",
        find_violations=_check_mpi_with_groups,
    ),
    Rule(
        schema_paths=("spec.sagemaker.rankReports",),
        rationale="Programs on the other groups would report too, and muster can't distinguish them from the ranks.",
        message="rank reports need ranks in all groups; set Auto or Off",
        find_violations=_check_reports_with_groups,
    ),
    Rule(
        schema_paths=("spec.sagemaker",),
        rationale="SageMaker rejects a warm pool of spot instances.",
        message="a warm pool and spot exclude each other; remove keepAliveSeconds or spot",
        find_violations=_check_spot_and_warm_pool,
        cel="!has(self.spot) || !has(self.keepAliveSeconds)",
    ),
    Rule(
        schema_paths=("spec.sagemaker",),
        rationale="maxWaitSeconds includes the training time, so SageMaker rejects a value below maxRunSeconds.",
        message="maxWaitSeconds must be at least maxRunSeconds; raise maxWaitSeconds",
        find_violations=_check_short_wait,
        cel="!has(self.spot) || !has(self.spot.maxWaitSeconds) || self.spot.maxWaitSeconds >= self.maxRunSeconds",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="SageMaker needs an image.",
        message="spec.image or sagemaker.framework is needed",
        find_violations=_check_missing_image,
        cel="self.backend != 'SageMaker' || !has(self.sagemaker) || has(self.image) || has(self.sagemaker.framework)",
    ),
    Rule(
        schema_paths=("spec.sagemaker.framework",),
        rationale="SageMaker has an image for each version of a framework.",
        message="the framework needs a version; set version, or spec.image",
        find_violations=_check_missing_version,
    ),
    Rule(
        schema_paths=("spec.sagemaker.framework",),
        rationale="Each Hugging Face image is based on PyTorch or TensorFlow.",
        message="HuggingFace needs exactly one of pytorchVersion and tensorflowVersion; other frameworks allow neither",
        find_violations=_check_hugging_face_versions,
    ),
    Rule(
        schema_paths=("spec.sagemaker.framework.modelDir",),
        rationale="Other frameworks' images don't read modelDir.",
        message="modelDir works only with TensorFlow; remove it",
        find_violations=_check_model_dir,
    ),
)
