"""Rules about what a SageMaker job needs: a role, instances, an image."""

from collections.abc import Iterator

from muster.api.document import quoted
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import sagemaker_blocks
from muster.api.spec.sagemaker.launch import is_on_some_instances
from muster.api.validation.rule import Breach, Rule


def _no_block(spec: Spec) -> Iterator[Breach]:
    if spec.backend == "SageMaker" and spec.sagemaker is None:
        yield Breach(("sagemaker",), "none with backend: SageMaker")


def _role(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        if block.role is None:
            yield Breach(("sagemaker",), "none")


def _instances(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        if (block.instance_type is None) == (not block.instance_groups):
            yield Breach(("sagemaker",), "neither of them" if block.instance_type is None else "both")


def _group_sizes(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        total = sum(group.instance_count for group in block.instance_groups)
        if block.instance_groups and total != spec.nodes:
            yield Breach(("nodes",), f"{spec.nodes} with groups of {total} instances")


def _group_names(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        names = [group.name for group in block.instance_groups]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Breach(("sagemaker", "instanceGroups", index, "name"), f"{quoted(name)} twice")


def _ranks_of_unlike_groups(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        is_one_rank = spec.launcher.chosen.command_starts_ranks or block.distribution is not None
        is_unlike = any(
            group.instance_type != block.instance_groups[0].instance_type for group in block.instance_groups
        )
        if spec.procs_per_node == "Auto" and not is_one_rank and is_unlike:
            yield Breach(("procsPerNode",), f"Auto with {', '.join(group.name for group in block.instance_groups)}")


def _mpi_over_groups(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        if block.start == "Channels":
            continue  # a ModelTrainer can send such a job and has no field for the group: a note explains the result
        if spec.launcher.mpi is not None and block.distribution is None and len(block.instance_groups) > 1:
            yield Breach(("launcher", "mpi"), f"it with {', '.join(group.name for group in block.instance_groups)}")


def _reports_of_some(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        if block.rank_reports == "On" and is_on_some_instances(block):
            yield Breach(("sagemaker", "rankReports"), "On with an instanceGroup that runs the ranks")


def _spot_and_warm_pool(spec: Spec) -> Iterator[Breach]:
    block = spec.sagemaker
    if block is not None and block.spot is not None and block.keep_alive_seconds is not None:
        yield Breach(("sagemaker",), "keepAliveSeconds with spot")


def _short_wait(spec: Spec) -> Iterator[Breach]:
    block = spec.sagemaker
    wait = block.spot.max_wait_seconds if block is not None and block.spot is not None else None
    if block is not None and wait is not None and wait < block.max_run_seconds:
        yield Breach(("sagemaker", "spot", "maxWaitSeconds"), f"{wait} with maxRunSeconds: {block.max_run_seconds}")


def _no_image(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        if spec.image is None and block.framework is None:
            yield Breach(("sagemaker",), "neither of them")


def _no_version(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        if spec.image is None and block.framework is not None and block.framework.version is None:
            yield Breach(("sagemaker", "framework"), f"{block.framework.name} without")


def _versions_beneath(spec: Spec) -> Iterator[Breach]:
    framework = spec.sagemaker.framework if spec.sagemaker is not None else None
    if framework is None:
        return
    beneath = {"pytorchVersion": framework.pytorch_version, "tensorflowVersion": framework.tensorflow_version}
    chosen = [name for name, version in beneath.items() if version is not None]
    if framework.name != "HuggingFace" and chosen:
        yield Breach(("sagemaker", "framework"), f"{' and '.join(chosen)} with {framework.name}")
    elif framework.name == "HuggingFace" and len(chosen) != 1 and (spec.image is None or chosen):
        yield Breach(("sagemaker", "framework"), " and ".join(chosen) or "neither of them with HuggingFace")


def _model_dir(spec: Spec) -> Iterator[Breach]:
    framework = spec.sagemaker.framework if spec.sagemaker is not None else None
    if framework is not None and framework.name != "TensorFlow" and framework.model_dir != "Auto":
        yield Breach(("sagemaker", "framework", "modelDir"), f"one with {framework.name}")


SAGEMAKER_RULES = (
    Rule(
        places=("spec",),
        why="SageMaker requires a role and instances, and no other field names them.",
        sentence="sagemaker: {role: ..., instanceType: ...} is needed",
        breaches=_no_block,
        cel="self.backend != 'SageMaker' || has(self.sagemaker)",
    ),
    Rule(
        places=("spec",),
        why="The training job runs with this role, and muster has no default for it.",
        sentence="role is needed: arn:aws:iam::<account>:role/<name>",
        breaches=_role,
        cel="self.backend != 'SageMaker' || !has(self.sagemaker) || has(self.sagemaker.role)",
    ),
    Rule(
        places=("spec",),
        why="SageMaker takes one or the other.",
        sentence="exactly one of instanceType and instanceGroups must be set",
        breaches=_instances,
        cel="self.backend != 'SageMaker' || !has(self.sagemaker) || has(self.sagemaker.instanceType) != "
        "(has(self.sagemaker.instanceGroups) && self.sagemaker.instanceGroups.size() > 0)",
    ),
    Rule(
        places=("spec.nodes",),
        why="The status would show another number of nodes.",
        sentence="nodes must be the number of instances in all groups",
        breaches=_group_sizes,
    ),
    Rule(
        places=("spec.sagemaker.instanceGroups",),
        why="Channels and ranks find a group by its name.",
        sentence="each name may occur only once; rename one",
        breaches=_group_names,
    ),
    Rule(
        places=("spec.procsPerNode",),
        why="Instances of different types have different numbers of devices, and launchers need one number for all.",
        sentence="groups of several types run the same number of ranks on each instance: give the number, or the "
        "group that runs them in sagemaker.distribution.instanceGroup",
        breaches=_ranks_of_unlike_groups,
    ),
    Rule(
        places=("spec.launcher.mpi",),
        why="SageMaker's toolkit would start an mpirun in each group, each with its own world.",
        sentence="one group runs the ranks: name it, sagemaker: {distribution: {mpi: {}, instanceGroup: ...}}",
        breaches=_mpi_over_groups,
    ),
    Rule(
        places=("spec.sagemaker.rankReports",),
        why="Programs on the other groups would report as well, and muster could not distinguish them from the ranks.",
        sentence="ranks on one of several groups can't report; set Auto or Off",
        breaches=_reports_of_some,
    ),
    Rule(
        places=("spec.sagemaker",),
        why="SageMaker refuses a warm pool of spot instances.",
        sentence="a warm pool and spot exclude each other; remove keepAliveSeconds or spot",
        breaches=_spot_and_warm_pool,
        cel="!has(self.spot) || !has(self.keepAliveSeconds)",
    ),
    Rule(
        places=("spec.sagemaker",),
        why="SageMaker rejects a shorter one: it includes the run.",
        sentence="maxWaitSeconds is at least maxRunSeconds; raise it",
        breaches=_short_wait,
        cel="!has(self.spot) || !has(self.spot.maxWaitSeconds) || self.spot.maxWaitSeconds >= self.maxRunSeconds",
    ),
    Rule(
        places=("spec",),
        why="SageMaker needs an image.",
        sentence="spec.image or sagemaker.framework is needed",
        breaches=_no_image,
        cel="self.backend != 'SageMaker' || !has(self.sagemaker) || has(self.image) || has(self.sagemaker.framework)",
    ),
    Rule(
        places=("spec.sagemaker.framework",),
        why="SageMaker has several images of a framework.",
        sentence="version is needed, or spec.image",
        breaches=_no_version,
    ),
    Rule(
        places=("spec.sagemaker.framework",),
        why="Hugging Face's images are based on one of the two; other images are not.",
        sentence="exactly one of pytorchVersion and tensorflowVersion is needed with HuggingFace, else neither",
        breaches=_versions_beneath,
    ),
    Rule(
        places=("spec.sagemaker.framework.modelDir",),
        why="Other frameworks' images don't read it.",
        sentence="modelDir works only with TensorFlow; remove it",
        breaches=_model_dir,
    ),
)
