"""Rules about a SageMaker job's data: channels, locations in Amazon S3, Debugger and profiler."""

from collections.abc import Iterator

from muster.api import s3_uri
from muster.api.document import FieldPath, quote
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import find_debugger_conflict, list_sagemaker_blocks
from muster.api.spec.sagemaker.channels import ChannelOptions
from muster.api.spec.sagemaker.debug import Debugger, Profiler
from muster.api.validation.rule import Rule, Violation

MAX_TAG_CHARS = 128
"""The maximum length of TagKey in botocore's service model of 2017-07-24."""

_RESERVED_TAGS = ("aws:", "muster.dev/")


def _check_volumes(spec: Spec) -> Iterator[Violation]:
    if spec.backend != "SageMaker":
        return
    for index, channel in enumerate(spec.inputs):
        if channel.volume is not None:
            yield Violation(("inputs", index, "volume"), "a volume")
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        yield Violation(("checkpoint", "volume"), "a volume")
    if spec.output is not None and spec.output.volume is not None:
        yield Violation(("output", "volume"), "a volume")


def _check_file_systems(spec: Spec) -> Iterator[Violation]:
    if spec.backend == "SageMaker":
        return
    for index, channel in enumerate(spec.inputs):
        if channel.sagemaker is not None and channel.sagemaker.file_system is not None:
            yield Violation(("inputs", index, "sagemaker", "fileSystem"), f"a file system with backend: {spec.backend}")


def _check_kubernetes_options(spec: Spec) -> Iterator[Violation]:
    if spec.backend == "SageMaker":
        return
    for index, channel in enumerate(spec.inputs):
        options = channel.sagemaker or ChannelOptions()
        if options.data_type != "S3Prefix":
            yield Violation(("inputs", index, "sagemaker", "dataType"), options.data_type)


def _check_file_system_options(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        for index, channel in enumerate(spec.inputs):
            file_system = channel.sagemaker.file_system if channel.sagemaker is not None else None
            if file_system is not None and block.vpc is None:
                yield Violation(("inputs", index, "sagemaker", "fileSystem"), "a file system without sagemaker.vpc")
            if file_system is not None and not file_system.path.startswith("/"):
                yield Violation(("inputs", index, "sagemaker", "fileSystem", "path"), quote(file_system.path))


def _check_unused_options(spec: Spec) -> Iterator[Violation]:
    for index, channel in enumerate(spec.inputs):
        options = channel.sagemaker or ChannelOptions()
        path: FieldPath = ("inputs", index, "sagemaker")
        allowed_options = ChannelOptions(file_system=options.file_system, input_mode=options.input_mode)
        if channel.s3 is None and options != allowed_options:
            yield Violation(path, "options for s3, which is unset")
        if options.attribute_names and options.data_type != "AugmentedManifestFile":
            yield Violation((*path, "attributeNames"), f"attribute names with dataType: {options.data_type}")


def _check_channel_groups(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        names = [group.name for group in block.instance_groups]
        for index, channel in enumerate(spec.inputs):
            for name in channel.sagemaker.instance_groups if channel.sagemaker is not None else ():
                if name not in names:
                    yield Violation(("inputs", index, "sagemaker", "instanceGroups"), quote(name))


def _check_uris(spec: Spec) -> Iterator[Violation]:
    block = spec.sagemaker
    if block is None:
        return
    uris: list[tuple[FieldPath, str | None]] = [
        (("codeLocation",), block.code_location),
        (("debugger", "s3"), block.debugger.s3),
        (("profiler", "s3"), block.profiler.s3),
        (("tensorBoard", "s3"), block.tensor_board.s3 if block.tensor_board is not None else None),
        *((("debugger", "rules", index, "s3"), rule.s3) for index, rule in enumerate(block.debugger.rules)),
        *((("profiler", "rules", index, "s3"), rule.s3) for index, rule in enumerate(block.profiler.rules)),
    ]
    for path, uri in uris:
        if uri is not None and not s3_uri.is_s3_uri(uri):
            yield Violation(("sagemaker", *path), quote(uri))


def _check_tags(spec: Spec) -> Iterator[Violation]:
    for name in spec.sagemaker.tags if spec.sagemaker is not None else ():
        if not 0 < len(name) <= MAX_TAG_CHARS or name.lower().startswith(_RESERVED_TAGS):
            yield Violation(("sagemaker", "tags", name), quote(name))


def _check_unused_debugging(spec: Spec) -> Iterator[Violation]:
    block = spec.sagemaker
    if block is None:
        return
    debugger, profiler = block.debugger, block.profiler
    if debugger.hook == "Disabled" and debugger != Debugger(hook="Disabled", rules=debugger.rules):
        yield Violation(("sagemaker", "debugger"), "settings with hook: Disabled")
    if profiler.mode in ("Disabled", "Unset") and profiler != Profiler(mode=profiler.mode):
        yield Violation(("sagemaker", "profiler"), f"settings with mode: {profiler.mode}")


def _check_unsupported_debugger(spec: Spec) -> Iterator[Violation]:
    for block in list_sagemaker_blocks(spec):
        conflict, debugger = find_debugger_conflict(spec), block.debugger
        if conflict == "parameterServer" and debugger not in (Debugger(), Debugger(hook="Disabled")):
            yield Violation(("sagemaker", "debugger"), "settings with parameterServer")
        if conflict == "checkpointPath" and debugger.hook == "Auto" and debugger != Debugger(rules=debugger.rules):
            yield Violation(("sagemaker", "debugger"), "settings of hook: Auto with checkpointPath")


def _check_rule_names(spec: Spec) -> Iterator[Violation]:
    block = spec.sagemaker
    if block is None:
        return
    for field, rules in (("debugger", block.debugger.rules), ("profiler", block.profiler.rules)):
        for index, rule in enumerate(rules):
            if rule.name in [other_rule.name for other_rule in rules[:index]]:
                yield Violation(("sagemaker", field, "rules", index, "name"), f"{quote(rule.name)} twice")


SAGEMAKER_DATA_RULES = (
    Rule(
        schema_paths=("spec",),
        rationale="muster would download the list of objects as the data itself.",
        message="on Kubernetes s3.uri has to be a key prefix, not a manifest; use a prefix, or backend: SageMaker",
        find_violations=_check_kubernetes_options,
    ),
    Rule(
        schema_paths=("spec",),
        rationale="SageMaker's instances are outside the cluster and can't mount its volumes.",
        message="SageMaker can't mount a volume; use s3",
        find_violations=_check_volumes,
    ),
    Rule(
        schema_paths=("spec.inputs[]",),
        rationale="Only SageMaker mounts a fileSystem.",
        message="on Kubernetes use volume, for example a persistentVolumeClaim of the file system",
        find_violations=_check_file_systems,
    ),
    Rule(
        schema_paths=("spec.inputs[]",),
        rationale="SageMaker mounts a file system through the job's VPC, and needs an absolute path.",
        message="sagemaker.vpc is needed, with subnets that reach the file system, and a path that begins with /",
        find_violations=_check_file_system_options,
    ),
    Rule(
        schema_paths=("spec.inputs[].sagemaker",),
        rationale="The options would have no effect.",
        message="these options need s3, and attributeNames needs dataType: AugmentedManifestFile; remove them",
        find_violations=_check_unused_options,
    ),
    Rule(
        schema_paths=("spec.inputs[].sagemaker",),
        rationale="SageMaker refuses the job.",
        message="the name of one of sagemaker.instanceGroups is expected",
        find_violations=_check_channel_groups,
    ),
    Rule(
        schema_paths=(
            "spec.sagemaker.codeLocation",
            "spec.sagemaker.tensorBoard.s3",
            *(
                f"spec.sagemaker.{field}.{field_path}"
                for field in ("debugger", "profiler")
                for field_path in ("s3", "rules[].s3")
            ),
        ),
        rationale="Several programs read the URI, and all of them must derive the same bucket and key.",
        message=f"the folder must be in Amazon S3; {s3_uri.MESSAGE}",
        find_violations=_check_uris,
        cel=s3_uri.CEL,
    ),
    Rule(
        schema_paths=("spec.sagemaker.tags",),
        rationale="SageMaker refuses the job, or muster would mistake the tag for its own.",
        message="a tag's name has 1 to 128 characters, and begins with neither aws: nor muster.dev/",
        find_violations=_check_tags,
    ),
    Rule(
        schema_paths=("spec.sagemaker",),
        rationale="Settings of a disabled debugger or profiler have no effect.",
        message="the settings would have no effect; remove them, or enable the debugger or profiler",
        find_violations=_check_unused_debugging,
    ),
    Rule(
        schema_paths=("spec.sagemaker.debugger",),
        rationale="SageMaker Debugger doesn't work with parameter servers, nor with a custom folder for checkpoints, "
        "and the SageMaker SDK drops it silently.",
        message="remove these settings",
        find_violations=_check_unsupported_debugger,
    ),
    Rule(
        schema_paths=("spec.sagemaker",),
        rationale="SageMaker refuses the job.",
        message="each rule's name may occur only once; rename one",
        find_violations=_check_rule_names,
    ),
)
